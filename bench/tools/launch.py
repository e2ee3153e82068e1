"""Runs a command and prints, as JSON, what it used and what it wrote to standard output.

This is a small process of its own: Linux counts what a parent held when it forked towards its child's peak memory, so a
parent with the whole truth in memory would be measured instead.
"""

import json
import os
import subprocess
import sys
import time

started = time.monotonic()
with subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True) as process:
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
measured = {
    "status": process.returncode,
    "cpu_seconds": usage.ru_utime + usage.ru_stime,
    "wall_seconds": time.monotonic() - started,
    # Linux reports it in kilobytes.
    "peak_bytes": usage.ru_maxrss * 1024,
    "said": said,
}
print(json.dumps(measured))
