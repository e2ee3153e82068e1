"""What the Python peers share: reading, cutting, writing. Text is cut as nearset cuts it, as far as a regular expression
can: lower-cased words, five per shingle; a shorter text is one shingle, and a text without words has none."""

import json
import os
import re
import sys

WORD = re.compile(r"\w+")


def shingles(text: str) -> list[str]:
    words = WORD.findall(text.lower())
    if not words:
        return []
    return [" ".join(words[i : i + 5]) for i in range(max(1, len(words) - 4))]


def documents() -> int:
    with open(sys.argv[1], "rb") as lines:
        return sum(1 for _ in lines)


def resident_bytes() -> int:
    with open("/proc/self/statm") as status:
        return int(status.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def deduplicate(is_near) -> None:
    """Copies those lines of sys.argv[1] to sys.argv[2] for which `is_near(number, shingles)` has seen nothing near."""
    before = resident_bytes()
    with open(sys.argv[1], encoding="utf-8") as lines, open(sys.argv[2], "w", encoding="utf-8") as out:
        for number, line in enumerate(lines):
            cut = shingles(json.loads(line)["text"])
            if not cut or not is_near(number, cut):
                out.write(line)
        print(json.dumps({"index_bytes": resident_bytes() - before}))


def pairs(find) -> None:
    """Writes the near pairs of ids in sys.argv[1] to sys.argv[2]; for each line, `find(number, shingles)` returns the
    numbers of the earlier documents near it."""
    before, ids = resident_bytes(), []
    with open(sys.argv[1], encoding="utf-8") as lines, open(sys.argv[2], "w", encoding="utf-8") as out:
        for number, line in enumerate(lines):
            record = json.loads(line)
            ids.append(record["id"])
            cut = shingles(record["text"])
            for earlier in find(number, cut) if cut else ():
                out.write(f"{ids[earlier]}\t{record['id']}\n")
        print(json.dumps({"index_bytes": resident_bytes() - before}))
