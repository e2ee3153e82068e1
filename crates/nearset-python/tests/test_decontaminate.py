"""`decontaminate` and `Benchmark`, held against the program."""

import gzip
import json
from pathlib import Path

import nearset
import pytest

QUESTIONS = [
    "A ferry carries 47 lorries across the strait every morning and 31 in the afternoon. How many lorries cross in a week?",
    "Which of the planets of the solar system has the shortest year, and how many days of ours does it last?",
    "一辆汽车以每小时六十公里的速度行驶三个半小时，请问它一共行驶了多少公里？",
]
ITEMS = [{"id": f"q{i}", "question": question, "answer": str(i)} for i, question in enumerate(QUESTIONS)]


@pytest.fixture
def pages(texts):
    """Licences, every hundredth with a question in it."""
    pages = list(texts[:500])
    for i in range(0, 500, 100):
        question = QUESTIONS[i // 100 % 3]
        pages[i] = f"é {pages[i]}\n{question.upper()} {pages[i]}"
    return pages


@pytest.fixture
def items(tmp_path):
    path = tmp_path / "items.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in ITEMS))
    return path


def test_texts_that_hold_nothing_are_kept(pages):
    kept, findings = nearset.decontaminate(pages, ITEMS, return_findings=True)
    assert kept.tolist() == [i for i in range(500) if i % 100]
    assert [(finding.position, finding.item) for finding in findings] == [(0, "q0"), (100, "q1"), (200, "q2"), (300, "q0"), (400, "q1")]
    for finding in findings:
        question = QUESTIONS[int(finding.item[1])].upper().rstrip("?？")
        assert pages[finding.position][finding.start : finding.end].rstrip("？") == question
        assert finding.field == "question" and finding.share == 1.0 and finding.score > 1
    assert nearset.decontaminate(iter(pages), ITEMS, threads=1).tolist() == kept.tolist()


def test_the_program_finds_the_same(pages, items, tmp_path, nearset_program):
    source, out, leaks = tmp_path / "in.jsonl", tmp_path / "out.jsonl", tmp_path / "leaks.jsonl"
    source.write_text("".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(pages)))
    saved = tmp_path / "items.nearset"
    nearset.Benchmark(items).save(saved)
    for benchmark in (["--benchmark", items], ["--against", saved]):
        nearset_program("decontaminate", source, *benchmark, "-o", out, "--removed", leaks, "--force", "--quiet")
        kept, findings = nearset.decontaminate(pages, nearset.Benchmark(items), return_findings=True)
        assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == kept.tolist()
        theirs = [found for line in leaks.read_text().splitlines() for found in json.loads(line)["findings"]]
        assert [(found["item"], found["share"], found["text"]) for found in theirs] == [
            (found.item, round(found.share, 4), pages[found.position][found.start : found.end]) for found in findings
        ]


def test_benchmarks_are_made_of_files_records_and_texts(items, tmp_path):
    saved = tmp_path / "items.nearset"
    nearset.Benchmark(ITEMS).save(saved)
    for benchmark in (nearset.Benchmark(items), nearset.Benchmark([Path(items)]), nearset.Benchmark(saved), nearset.Benchmark(ITEMS)):
        assert len(benchmark) == 3 and benchmark.too_short == []
        assert nearset.decontaminate([QUESTIONS[0]], benchmark).tolist() == []
    assert nearset.decontaminate(["none", QUESTIONS[1]], [QUESTIONS[1]]).tolist() == [0]
    assert nearset.Benchmark(["Which is true?"]).too_short == ["0"]
    assert len(nearset.Benchmark([{"riddle": QUESTIONS[0]}], fields=["riddle"])) == 1
    with pytest.raises(ValueError, match="riddle.*fields="):
        nearset.Benchmark([{"riddle": QUESTIONS[0]}])
    with pytest.raises(FileExistsError):
        nearset.Benchmark(ITEMS).save(saved)
    with pytest.raises(FileNotFoundError):
        nearset.Benchmark(tmp_path / "absent.jsonl")
    with pytest.raises(ValueError, match="share=2"):
        nearset.Benchmark(ITEMS, share=2)


def test_iterators_lose_nothing():
    assert len(nearset.Benchmark(item for item in ITEMS)) == len(nearset.Benchmark(iter(QUESTIONS))) == 3


def test_items_are_cut_out():
    benchmark = nearset.Benchmark(ITEMS)
    page = f"one {QUESTIONS[0]} two {QUESTIONS[0]} three"
    assert benchmark.mask(page) == "one ? two ? three"
    assert nearset.decontaminate([benchmark.mask(page)], benchmark).tolist() == [0]
    assert benchmark.mask("nothing") == "nothing"


def test_missing_texts():
    with pytest.raises(ValueError, match="missing"):
        nearset.decontaminate(["a", None], ITEMS)
    assert nearset.decontaminate(["a", None, QUESTIONS[0], "b"], ITEMS, missing="skip").tolist() == [0, 3]


def test_items_of_a_pipeline_lie_on_its_machines():
    from nearset.datatrove import Decontaminate

    for place in ("s3://bucket/items.nearset", ["items.jsonl", "s3://bucket/items.nearset"]):
        with pytest.raises(ValueError, match="s3://bucket/items.nearset: benchmark items are read from files that every machine has"):
            Decontaminate(place)


@pytest.mark.parametrize("mask", [False, True])
def test_in_a_pipeline_of_datatrove(pages, items, tmp_path, mask):
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter

    from nearset.datatrove import Decontaminate

    source, out, dropped = tmp_path / "in", tmp_path / "out", tmp_path / "dropped"
    source.mkdir()
    for file in range(2):
        records = [{"id": str(i), "text": pages[i]} for i in range(file * 250, file * 250 + 250)]
        (source / f"{file}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    step = Decontaminate(str(items), mask=mask, exclusion_writer=JsonlWriter(str(dropped)))
    LocalPipelineExecutor([JsonlReader(str(source)), step, JsonlWriter(str(out))], tasks=2, logging_dir=str(tmp_path / "logs")).run()

    def written(folder):
        lines = [line for path in sorted(folder.glob("*.gz")) for line in gzip.open(path, "rt", encoding="utf-8")]
        return [json.loads(line) for line in lines]

    benchmark = nearset.Benchmark(items)
    if mask:
        assert [record["text"] for record in written(out)] == [benchmark.mask(page) for page in pages]
    else:
        assert [int(record["id"]) for record in written(out)] == nearset.decontaminate(pages, benchmark).tolist()
        assert [record["metadata"]["leak_of"].split(": ")[1] for record in written(dropped)] == ["q0", "q1", "q2", "q0", "q1"]
