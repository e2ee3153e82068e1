#!/usr/bin/env python3
"""Cuts the examples out of `../shared/data`, and prints how near the licence texts are to earlier ones.

    python3 examples/cut.py            writes examples/licences.jsonl, image-hashes.tsv and words.tsv
    python3 examples/cut.py --check    only says whether the files are what it would write
"""

import json
import lzma
import re
import struct
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
DATA = HERE.parent.parent / "shared" / "data"
LICENCES = DATA / "scancode-licenses" / "licenses.jsonl.xz"
HASHES = DATA / "image-hashes" / "hashes.tsv.xz"
VECTORS = DATA / "glove" / "glove_top50k_f32.npy"
VOCABULARY = DATA / "glove" / "vocab_top50k.txt"

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


def image_hashes():
    """Every picture of a hundred that was also hashed resized, cropped, blurred and so on, and every tenth that was not."""
    with lzma.open(HASHES, "rt", encoding="utf-8") as lines:
        header, *rows = (line.rstrip("\n").split("\t") for line in lines)
    image, transform, pdq = (header.index(name) for name in ("image", "transform", "pdq256"))
    versions = Counter(row[image] for row in rows)
    distorted = sorted(name for name, number in versions.items() if number > 1)
    plain = sorted(name for name, number in versions.items() if number == 1)
    taken = set(distorted[::60]) | set(plain[::50])
    yield "image\ttransform\tpdq256\n"
    for row in rows:
        if row[image] in taken:
            yield f"{row[image]}\t{row[transform]}\t{row[pdq]}\n"


WORDS = (
    "monday tuesday wednesday thursday friday saturday sunday january february march april june july september october "
    "november december two three four five six seven eight nine ten red blue green yellow white black king queen prince "
    "princess london paris berlin madrid rome tokyo france germany spain italy he she his her mother father brother sister "
    "doctor nurse hospital school teacher student university river lake mountain ocean computer software internet guitar "
    "piano violin bread butter cheese wine beer football basketball tennis election president minister parliament bank "
    "money market stock price oil gas water fire earth air"
).split()


def word_vectors():
    """Some words that are near others, and every five-hundredth of the vocabulary, to three digits."""
    vocabulary = VOCABULARY.read_text(encoding="utf-8").splitlines()
    taken = set(WORDS) | set(vocabulary[500::500])
    array = VECTORS.read_bytes()
    start, dimension = 10 + struct.unpack_from("<H", array, 8)[0], 50
    for position, word in enumerate(vocabulary):
        if word in taken:
            vector = struct.unpack_from(f"<{dimension}f", array, start + 4 * dimension * position)
            yield word + "".join(f"\t{component:.3f}" for component in vector) + "\n"


def main():
    absent = [str(path) for path in (LICENCES, HASHES, VECTORS, VOCABULARY) if not path.is_file()]
    if absent:
        print(f"skipped: {', '.join(absent)} not here")
        return
    with lzma.open(LICENCES, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    cut = [{"id": record["id"], "text": record["text"]} for record in chosen(records)]
    files = {
        "licences.jsonl": "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in cut),
        "image-hashes.tsv": "".join(image_hashes()),
        "words.tsv": "".join(word_vectors()),
    }
    for name, content in files.items():
        path = HERE / name
        if "--check" not in sys.argv[1:]:
            path.write_text(content, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != content:
            sys.exit(f"{path} is not what this script writes: run it without --check")
        print(f"{name}: {content.count(chr(10))} lines, {len(content.encode()):,} bytes")
    near = list(nearest_earlier(record["text"] for record in cut))
    words = [len(re.findall(r"\w+", record["text"])) for record in cut]
    print(f"of the licences {sum(n < 5 for n in words)} have fewer than five words; by their nearest earlier one:")
    for low, high in ((0, 0.3), (0.3, 0.6), (0.6, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 1), (1, 1.01)):
        print(f"  {low:.1f} to {min(high, 1):.1f}: {sum(low <= similarity < high for similarity in near)}")


if __name__ == "__main__":
    main()
