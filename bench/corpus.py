"""The benchmark's corpus: licence texts, bible chapters and revisions of Python proposals, as JSONL with `id` and
`text`.

It has what deduplicators meet: families of thousands of texts that share paragraphs, exact and re-typed copies,
translations of one chapter at every degree of similarity, long documents edited here and there, and texts of one or two
words.
"""

import json
import lzma
import string
from pathlib import Path

FILES = ("scancode-licenses/licenses.jsonl.xz", "bible/bible9.tsv.xz", "pep-history/peps.jsonl.xz")


def missing(data: Path) -> list[Path]:
    return [data / name for name in FILES if not (data / name).is_file()]


def licences(data: Path, quick: bool):
    """Yields ids and texts of the licences."""
    with lzma.open(data / FILES[0], "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if quick and number >= 3_500:
                break
            record = json.loads(line)
            yield f"licence:{record['id']}", record["text"]


def documents(data: Path, quick: bool):
    """Yields ids and texts. The quick corpus keeps families together: alphabetical neighbours, whole sets of versions."""
    _, bible, peps = (data / name for name in FILES)
    yield from licences(data, quick)
    chapters: dict[tuple[int, str], list[str]] = {}
    with lzma.open(bible, "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            verse, version, text = line.rstrip("\n").split("\t")
            chapters.setdefault((int(verse) // 1000, version), []).append(text)
    for (chapter, version), verses in chapters.items():
        if not quick or chapter % 10 == 0:
            yield f"bible:{chapter}:{version}", " ".join(verses)
    with lzma.open(peps, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            if not quick or record["pep"] % 10 == 0:
                yield f"pep:{record['pep']}:{record['version']}", record["text"]


def write(data: Path, path: Path, quick: bool) -> None:
    partial = path.with_suffix(".partial")
    with open(partial, "w", encoding="utf-8") as out:
        for name, text in documents(data, quick):
            out.write(json.dumps({"id": name, "text": text}, ensure_ascii=False) + "\n")
    partial.rename(path)


def write_copies(corpus: Path, path: Path, copies: int) -> None:
    """Writes the corpus several times, in different letters each time: the same numbers and lengths of texts, near within
    a copy and unrelated between copies."""
    partial = path.with_suffix(".partial")
    lower, upper = string.ascii_lowercase, string.ascii_uppercase
    with open(partial, "w", encoding="utf-8") as out:
        for copy in range(copies):
            turned = str.maketrans(lower + upper, lower[copy:] + lower[:copy] + upper[copy:] + upper[:copy])
            with open(corpus, encoding="utf-8") as lines:
                for line in lines:
                    record = json.loads(line)
                    record = {"id": f"{copy}:{record['id']}", "text": record["text"].translate(turned)}
                    out.write(json.dumps(record, ensure_ascii=False) + "\n")
    partial.rename(path)
