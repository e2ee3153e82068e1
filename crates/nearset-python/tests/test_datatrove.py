"""`nearset.datatrove` in pipelines of datatrove, as its users run them."""

import gzip
import json

import nearset
import pytest
from conftest import LICENCES
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter

from nearset.datatrove import BuildFilters, NearDedup


def written(folder):
    """The ids that the tasks have written, in the order of their ranks."""
    found = []
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            found += [json.loads(line)["id"] for line in lines]
    return found


def run(tmp_path, source, tasks, capacity, **options):
    """Two stages over the files of a folder."""
    filters, out, dropped = tmp_path / "filters", tmp_path / "out", tmp_path / "dropped"
    reader = JsonlReader(str(source))
    first = LocalPipelineExecutor(
        [reader, BuildFilters(str(filters), capacity)], tasks=tasks, workers=2, logging_dir=str(tmp_path / "logs1")
    )
    second = LocalPipelineExecutor(
        [
            JsonlReader(str(source)),
            NearDedup(str(filters), capacity, exclusion_writer=JsonlWriter(str(dropped)), **options),
            JsonlWriter(str(out)),
        ],
        tasks=tasks,
        workers=2,
        logging_dir=str(tmp_path / "logs2"),
        depends=first,
    )
    second.run()
    return written(out), written(dropped)


@pytest.fixture
def files(tmp_path):
    """The licences in four files, with their positions as ids."""
    lines = LICENCES.read_text(encoding="utf-8").split("\n")[:-1]
    folder = tmp_path / "in"
    folder.mkdir()
    for file in range(4):
        records = [{"id": str(i), "text": json.loads(lines[i])["text"]} for i in range(file * 180, file * 180 + 180)]
        (folder / f"{file}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return folder


@pytest.mark.parametrize("tasks", [1, 4])
def test_tasks_together_keep_what_one_run_keeps(texts, tmp_path, files, tasks):
    kept, dropped = run(tmp_path, files, tasks, len(texts))
    # Its readers leave out empty documents, which are near nothing.
    assert kept == [str(i) for i in nearset.dedup(texts, verify=False) if texts[i]]
    assert sorted(map(int, kept + dropped)) == [i for i, text in enumerate(texts) if text]


def test_what_was_seen_before_is_dropped(texts, tmp_path, files):
    _, [seen] = nearset.dedup(texts[:400], verify=False, return_filters=True)
    kept, _ = run(tmp_path, files, 2, len(texts), against=seen)
    order = [i for rank in (0, 1) for file in (rank, rank + 2) for i in range(file * 180, file * 180 + 180)]
    assert kept == [str(order[i]) for i in nearset.dedup([texts[i] for i in order], verify=False, against=seen) if texts[order[i]]]
    assert kept and all(int(i) >= 400 for i in kept)


def test_documents_that_belong_to_another_task_now_fail(tmp_path, files):
    filters = str(tmp_path / "filters")
    LocalPipelineExecutor([JsonlReader(str(files)), BuildFilters(filters, 720)], logging_dir=str(tmp_path / "1")).run()
    fewer = JsonlReader(str(files), limit=500)
    with pytest.raises(RuntimeError, match="task 0 has 500 texts now and 719 when its filter was built"):
        LocalPipelineExecutor([fewer, NearDedup(filters, 720)], logging_dir=str(tmp_path / "2")).run()
    with pytest.raises(ValueError, match="capacity must be at least the number of all texts"):
        LocalPipelineExecutor(
            [JsonlReader(str(files)), BuildFilters(str(tmp_path / "small"), 1)], logging_dir=str(tmp_path / "3")
        ).run()
