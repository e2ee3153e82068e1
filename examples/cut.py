#!/usr/bin/env python3
"""Cuts `licences.jsonl` out of the licence texts in `../shared/data`, and prints how near its documents are to earlier ones.

    python3 examples/cut.py            writes examples/licences.jsonl
    python3 examples/cut.py --check    only says whether the file is what it would write
"""

import json
import lzma
import re
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent / "shared" / "data" / "scancode-licenses" / "licenses.jsonl.xz"
OUTPUT = HERE / "licences.jsonl"

# Families of licences with many variants each, from copies to paraphrases, and how many texts to take of each at most.
FAMILIES = {
    "apache-1.1": 100,
    "apache-2.0 WITH generic-exception": 10,
    "bsd-simplified": 160,
    "cc0-1.0": 30,
    "flex-2.5": 20,
    "free-unknown AND apache-2.0 WITH generic-exception": 10,
    "isc": 40,
    "latex2e": 25,
    "lbnl-bsd": 25,
    "libpbm": 5,
    "mit": 50,
    "openwall-md5-permissive": 15,
    "osf-1990": 10,
    "public-domain": 15,
    "public-domain OR other-permissive": 15,
    "zlib": 40,
}
# German, French, Spanish, Japanese and Chinese.
OTHER_LANGUAGES = re.compile(
    r"dl-de-|etalab-2\.0|liliq-|lal-1|m-plus_8\.|proprietary-license_(834|988|444)\.|.*_zh\.RULE|proprietary-license_and_gpl-2\.0_[24]\."
)
# Of all other whole licences of moderate length every so-manieth, most of them related to nothing here.
EVERY = 20
LONGEST = 6_000


def chosen(records):
    by_family = Counter(record["label"] for record in records)
    seen = Counter()
    others = 0
    for record in records:
        family = record["label"]
        if OTHER_LANGUAGES.match(record["id"]):
            yield record
        elif family in FAMILIES:
            # Spread evenly over the family, which is sorted by name.
            most, position = FAMILIES[family], seen[family]
            seen[family] += 1
            if position * most // by_family[family] != (position + 1) * most // by_family[family] or by_family[family] <= most:
                yield record
        elif record["kind"] == "license" and len(record["text"]) <= LONGEST:
            others += 1
            if others % EVERY == 0:
                yield record


def shingles(text):
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[i : i + 5]) for i in range(max(1, len(words) - 4))} if words else set()


def nearest_earlier(texts):
    sets = []
    for text in texts:
        mine = shingles(text)
        yield max((len(mine & other) / len(mine | other) for other in sets if mine and other), default=0.0)
        sets.append(mine)


def main():
    if not SOURCE.is_file():
        print(f"skipped: {SOURCE} is not here")
        return
    with lzma.open(SOURCE, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    cut = [{"id": record["id"], "text": record["text"]} for record in chosen(records)]
    content = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in cut)
    if "--check" in sys.argv[1:]:
        if OUTPUT.read_text(encoding="utf-8") != content:
            sys.exit(f"{OUTPUT} is not what this script writes: run it without --check")
    else:
        OUTPUT.write_text(content, encoding="utf-8")
    near = list(nearest_earlier(record["text"] for record in cut))
    words = [len(re.findall(r"\w+", record["text"])) for record in cut]
    print(f"{len(cut)} documents, {len(content.encode()):,} bytes, {sum(n < 5 for n in words)} of fewer than five words")
    for low, high in ((0, 0.3), (0.3, 0.6), (0.6, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 1), (1, 1.01)):
        print(f"  nearest earlier {low:.1f} to {min(high, 1):.1f}: {sum(low <= similarity < high for similarity in near)}")


if __name__ == "__main__":
    main()
