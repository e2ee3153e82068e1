#!/usr/bin/env bash
# Drives the explorer's page in Debian's Chromium, which is installed where we may; elsewhere the tests are skipped. `test.sh screenshots` draws the pictures
# of its guide instead.
set -euo pipefail
cd "$(dirname "$0")"
. ../../.ci/environment.sh
if ! command -v chromium >/dev/null && ! install chromium; then
  echo "browser: there is no Chromium, and the explorer's page is not tested: install chromium" >&2
  exit 0
fi
environment browser tests/browser/requirements.txt
program
cd tests/browser
export PYTHONDONTWRITEBYTECODE=1
if [ "${1:-}" = screenshots ]; then
  exec python screenshots.py
fi
python -m unittest "$@"
