"""The compared dedup of `nearset.datatrove`, in pipelines as datatrove's users run them: what one run says of the documents in their order."""

import gzip
import json
import shutil
from itertools import chain

import nearset
import numpy as np
import pytest
from conftest import corpus
from datatrove.executor import LocalPipelineExecutor
from datatrove.io import get_datafolder
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter

from nearset.datatrove import DedupBuckets, DedupClusters, DedupFilter, DedupSignatures, _dedup, _rounds, _store


def shards(folder, texts, count):
    """Texts in files, in turn as datatrove deals files out: with as many tasks, the order of the tasks is that of the texts."""
    folder.mkdir()
    size = -(-len(texts) // count)
    for i in range(count):
        lines = [json.dumps({"id": f"d{j}", "text": texts[j]}) for j in range(i * size, min(len(texts), (i + 1) * size))]
        (folder / f"{i:03}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def written(folder):
    """The records that the tasks have written, in the order of their ranks."""
    found = []
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            found += map(json.loads, lines)
    return found


def stages(tmp_path, source, tasks, near=None, *, bucket_tasks=3, work=None, **options):
    """The four stages over the files of a folder, of which the last is run with those before."""
    work = str(tmp_path / "work") if work is None else work

    def executor(name, pipeline, tasks, depends=None):
        return LocalPipelineExecutor(pipeline, tasks=tasks, workers=2, logging_dir=str(tmp_path / "logs" / name), depends=depends)

    def read():
        return JsonlReader(str(source))

    first = executor("1", [read(), DedupSignatures(work, read(), near)], tasks)
    second = executor("2", [DedupBuckets(work)], bucket_tasks, first)
    third = executor("3", [DedupClusters(work)], 1, second)
    dropped = JsonlWriter(str(tmp_path / "dropped"))
    steps = [read(), DedupFilter(work, exclusion_writer=dropped, **options), JsonlWriter(str(tmp_path / "out"))]
    return executor("4", steps, tasks, third)


def signed(work, source, tasks, near=None):
    """The first stage over the files of a folder."""
    for rank in range(tasks):
        DedupSignatures(work, JsonlReader(str(source)), near).run(JsonlReader(str(source)).run(None, rank, tasks), rank, tasks)


def filtered(work, source, tasks, **options):
    """The last stage over the files of a folder: the ids of what stays."""
    runs = (DedupFilter(work).run(JsonlReader(str(source), **options).run(None, rank, tasks), rank, tasks) for rank in range(tasks))
    return [document.id for document in chain.from_iterable(runs)]


def filtered_anew(work, source, tasks):
    """The same where an earlier run's output is gone."""
    shutil.rmtree(f"{work}/filtered")
    return filtered(work, source, tasks)


def in_turn(work, source, tasks, near=None):
    """The four stages, one after the other in this process: the ids of what stays."""
    signed(work, source, tasks, near)
    DedupBuckets(work).run()
    DedupClusters(work).run()
    return filtered(work, source, tasks)


def answers(tmp_path):
    """What became of each document."""
    said = {record["id"]: (None, None) for record in written(tmp_path / "out")}
    for record in written(tmp_path / "dropped"):
        assert record["metadata"]["filter_reason"] == "near" and record["id"] not in said
        said[record["id"]] = (record["metadata"]["duplicate_of"], record["metadata"]["similarity"])
    return said


def in_memory(texts, near=None):
    """The same in one process. Readers leave out empty documents."""
    kept, matches = nearset.dedup(texts, near, return_matches=True)
    said = {f"d{i}": (None, None) for i in kept.tolist() if texts[i]}
    return {**said, **{f"d{i}": (f"d{of}", near) for i, of, near in zip(*(column.tolist() for column in matches))}}


def by_program(run, tmp_path, texts, *arguments):
    """The same by `nearset dedup --annotate`."""
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(json.dumps({"id": f"d{i}", "text": text}) + "\n" for i, text in enumerate(texts) if text))
    run("dedup", source, "-o", out, "--force", "--quiet", "--annotate", "--id-field", "id", *arguments)
    return {record["id"]: (record["duplicate_of"], record["similarity"]) for record in map(json.loads, out.read_text().splitlines())}


@pytest.mark.parametrize(
    ("tasks", "wanted", "arguments"),
    [
        (1, {}, []),
        (4, {"near": 0.6, "seed": 7, "shingling": "words:3"}, ["--near", "0.6", "--seed", "7", "--shingle", "words:3"]),
        (5, {"seed": bytes(range(16))}, ["--seed", bytes(range(16)).hex()]),
    ],
)
def test_it_says_what_the_program_says(texts, nearset_program, tmp_path, tasks, wanted, arguments):
    shards(tmp_path / "in", texts, tasks)
    stages(tmp_path, tmp_path / "in", tasks, nearset.Request(**wanted)).run()
    expected = by_program(nearset_program, tmp_path, texts, *arguments)
    assert 100 < sum(of is not None for of, _ in expected.values()) < len(texts)
    assert answers(tmp_path) == expected
    assert [record["id"] for record in written(tmp_path / "out")] == [f"d{i}" for i, text in enumerate(texts) if text and expected[f"d{i}"][0] is None]


@pytest.mark.parametrize("few", [_rounds.FEW, 0], ids=["as it is", "all rounds"])
def test_families_chains_templates_and_copies_are_decided_on_as_in_one_pass(tmp_path, monkeypatch, few):
    monkeypatch.setattr(_rounds, "FEW", few)
    monkeypatch.setattr(_rounds, "ROUNDS", 4)
    # Texts that are held at a time are fewer than a bucket has.
    monkeypatch.setattr(_store, "TEXT_BYTES", 20_000)
    texts = corpus()
    shards(tmp_path / "in", texts, 3)
    stages(tmp_path, tmp_path / "in", 3).run()
    assert answers(tmp_path) == in_memory(texts)


def test_a_chain_is_not_decided_on_link_by_link(tmp_path, monkeypatch):
    monkeypatch.setattr(_rounds, "FEW", 4)
    rounds, rests = [], []
    for name, calls in (("_round", rounds), ("_rest", rests)):
        run = getattr(_rounds.Decisions, name)
        monkeypatch.setattr(_rounds.Decisions, name, lambda self, run=run, calls=calls: (calls.append(len(self.undecided)), run(self)))
    words, chain_of = [f"w{i}" for i in range(100)], []
    for i in range(120):
        words[7 * i % 100] = f"n{i}"
        chain_of.append(" ".join(words))
    shards(tmp_path / "in", chain_of, 1)
    assert in_turn(str(tmp_path / "work"), tmp_path / "in", 1, 0.9) == [f"d{i}" for i in nearset.dedup(chain_of, 0.9).tolist()]
    assert len(rounds) == 1 and len(rests) == 1 and rests[0] > 60


@pytest.mark.parametrize(("leaders", "most_pairs"), [(1, 1 << 25), (2, 1000), (3, 40)])
def test_what_goes_is_near_what_stays_however_little_of_a_bucket_is_compared(tmp_path, monkeypatch, leaders, most_pairs):
    monkeypatch.setattr(_rounds, "LEADERS", leaders)
    monkeypatch.setattr(_rounds, "MOST_PAIRS", most_pairs)
    monkeypatch.setattr(_rounds, "FEW", 1 << 30)
    texts, work = corpus(), str(tmp_path / "work")
    shards(tmp_path / "in", texts, 2)
    signed(work, tmp_path / "in", 2)
    DedupBuckets(work).run()
    decisions = _rounds.Decisions(_store.Store(get_datafolder(work)))
    assert len(decisions.undecided) > 50
    nearest, _ = decisions.run()
    assert np.array_equal(nearest["rid"], decisions.gone)
    assert not np.isin(nearest["of"], decisions.gone).any() and decisions.cut_short() > 0
    clusters = DedupClusters(work)
    clusters.run()
    assert clusters.stats["cut short"].total == decisions.cut_short()
    removed = {}
    for task in range(2):
        texts_of = JsonlReader(str(tmp_path / "in"))
        last = DedupFilter(work, exclusion_writer=JsonlWriter(str(tmp_path / "dropped")))
        removed[task] = {document.id for document in last.run(texts_of.run(None, task, 2), task, 2)}
    kept = removed[0] | removed[1]
    dropped = {record["id"]: record["metadata"] for record in written(tmp_path / "dropped")}
    assert len(dropped) > 300 and kept.isdisjoint(dropped) and len(kept) + len(dropped) == sum(map(bool, texts))
    pairs = nearset.pairs(texts)
    near = {(f"d{a}", f"d{b}"): value for a, b, value in zip(*(column.tolist() for column in pairs))}
    for id, said in dropped.items():
        of = said["duplicate_of"]
        assert of in kept and near[min((of, id), (id, of), key=lambda pair: pair not in near)] == said["similarity"]


@pytest.mark.parametrize("most_pairs", [1, 100, 5000])
def test_the_rest_may_be_decided_on_a_piece_at_a_time(tmp_path, monkeypatch, most_pairs):
    monkeypatch.setattr(_rounds, "FEW", 1 << 30)
    monkeypatch.setattr(_rounds, "MOST_PAIRS", most_pairs)
    firsts = []
    first_of = _rounds.Decisions._first
    monkeypatch.setattr(_rounds.Decisions, "_first", lambda self: firsts.append(first_of(self)) or firsts[-1])
    texts = corpus()
    shards(tmp_path / "in", texts, 1)
    expected = [f"d{i}" for i in nearset.dedup(texts).tolist() if texts[i]]
    assert in_turn(str(tmp_path / "work"), tmp_path / "in", 1) == expected and len(firsts) > 1


def test_documents_that_would_go_for_nothing_end_the_stage(texts, tmp_path):
    work = str(tmp_path / "work")
    shards(tmp_path / "in", texts[:200], 1)
    signed(work, tmp_path / "in", 1)
    DedupBuckets(work).run()
    decisions = _rounds.Decisions(_store.Store(get_datafolder(work)))
    decisions.gone = np.append(decisions.gone, 1 << 40)
    with pytest.raises(RuntimeError, match="documents would go for which none is known that stays"):
        decisions.run()


def test_texts_may_be_held_one_at_a_time(texts, tmp_path, monkeypatch):
    monkeypatch.setattr(_store, "TEXT_BYTES", 1)
    shards(tmp_path / "in", texts[:150], 2)
    assert in_turn(str(tmp_path / "work"), tmp_path / "in", 2) == [f"d{i}" for i in nearset.dedup(texts[:150]).tolist() if texts[i]]


def test_more_tasks_than_files_and_than_parts(texts, tmp_path):
    shards(tmp_path / "in", texts[:200], 2)
    stages(tmp_path, tmp_path / "in", 5, bucket_tasks=300).run()
    assert answers(tmp_path) == in_memory(texts[:200])


@pytest.mark.parametrize("limit", ["_SAMPLE", "_SAMPLE_BYTES"])
def test_what_is_common_is_learnt_alike_by_any_number_of_tasks(tmp_path, monkeypatch, limit):
    monkeypatch.setattr(_dedup, limit, 100 if limit == "_SAMPLE" else 50_000)
    texts, models, kept = corpus(), [], []
    shards(tmp_path / "in", texts, 5)
    for tasks in (5, 8, 40, 1):
        work = tmp_path / f"work{tasks}"
        signed(str(work), tmp_path / "in", tasks)
        models.append((work / "model.bin").read_bytes())
        if tasks in (5, 8):
            DedupBuckets(str(work)).run()
            DedupClusters(str(work)).run()
            kept.append(filtered(str(work), tmp_path / "in", tasks))
    assert len(models[0]) > 0 and models == [models[0]] * 4 and kept[0] == kept[1]


def test_ids_are_named_as_they_are(texts, tmp_path):
    (tmp_path / "in").mkdir()
    lines = [json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(texts)]
    (tmp_path / "in" / "0.jsonl").write_text("".join(lines), encoding="utf-8")
    stages(tmp_path, tmp_path / "in", 1).run()
    _, matches = nearset.dedup(texts, return_matches=True)
    assert [record["metadata"]["duplicate_of"] for record in written(tmp_path / "dropped")] == matches.near.tolist()


def test_documents_that_cannot_be_counted_are_refused_and_numbers_of_numpy_are_numbers(monkeypatch):
    assert [json.loads(_store.packed(id, "")[12:]) for id in (np.int64(5), np.float32(0.5), np.str_("a"), 7, "b", None)] == [5, 0.5, "a", 7, "b", None]
    monkeypatch.setattr(_store, "MOST_BYTES", 100)
    assert len(_store.packed("d1", "x" * 84)) == 100
    with pytest.raises(ValueError, match='the document "d1" takes 101 bytes, and 100 at most'):
        _store.packed("d1", "x" * 85)


def test_kept_documents_tell_how_many_went_for_them(texts, tmp_path):
    shards(tmp_path / "in", texts, 2)
    stages(tmp_path, tmp_path / "in", 2, copies=True).run()
    _, matches = nearset.dedup(texts, return_matches=True)
    counted = {record["id"]: record["metadata"]["copies"] for record in written(tmp_path / "out")}
    of = [f"d{i}" for i in matches.near.tolist()]
    assert counted == {id: of.count(id) for id in counted} and sum(counted.values()) == len(of) > 100


def test_the_folder_may_be_of_any_filesystem(texts, tmp_path):
    """One without names to map: what is read of it comes by ranges."""
    work = get_datafolder("memory://nearset-work")
    assert not work.is_local()
    shards(tmp_path / "in", texts[:300], 2)
    assert in_turn(work, tmp_path / "in", 2) == [f"d{i}" for i in nearset.dedup(texts[:300]).tolist() if texts[i]]


def test_other_documents_or_tasks_than_before_fail(texts, tmp_path):
    source, work = tmp_path / "in", str(tmp_path / "work")
    shards(source, texts[:200], 2)
    stages(tmp_path, source, 2).run()

    def last(tasks=2, **options):
        return [list(DedupFilter(work).run(JsonlReader(str(source), **options).run(None, rank, tasks), rank, tasks)) for rank in range(tasks)]

    assert sum(map(len, last())) == len(nearset.dedup(texts[:200]))
    with pytest.raises(ValueError, match="1 tasks, and signatures of 2: the first and the last stage have the same reader"):
        last(1)
    with pytest.raises(RuntimeError, match="task 0 has other documents now than when its signatures were written"):
        last(limit=50)
    changed = (source / "001.jsonl").read_text().replace("copyright", "copyleft!")
    (source / "001.jsonl").write_text(changed)
    with pytest.raises(RuntimeError, match="task 1 has other documents now"):
        last()
    with pytest.raises(ValueError, match="2 tasks: documents are decided on in order, by one task"):
        DedupClusters(work).run(None, 0, 2)


def test_what_an_earlier_run_has_left_is_not_taken_for_this_one(texts, tmp_path):
    source, other, work = tmp_path / "in", tmp_path / "other", str(tmp_path / "work")
    shards(source, texts[:60], 2)
    shards(other, texts[60:120], 2)
    kept = in_turn(work, source, 2, 0.8)
    assert kept == filtered(work, source, 2)

    def refused(of, stage, run):
        with pytest.raises(RuntimeError, match=f"work: {of}.*: run all tasks of {stage} and the stages after it again, .* another logging_dir"):
            run()

    # Another near.
    signed(work, source, 2, 0.5)
    refused("pairs/000.npy is of an earlier run, which differs in near", "DedupBuckets", DedupClusters(work).run)
    refused("decisions/00000.jsonl is of an earlier run, which differs in near", "DedupClusters", lambda: filtered(work, source, 2))
    # One of two tasks has compared.
    DedupBuckets(work).run(None, 0, 2)
    refused("pairs/001.npy is of an earlier run", "DedupBuckets", DedupClusters(work).run)
    DedupBuckets(work).run(None, 1, 2)
    refused("decisions/00000.jsonl is of an earlier run", "DedupClusters", lambda: filtered(work, source, 2))
    DedupClusters(work).run()
    filtered_anew(work, source, 2)
    # Fewer tasks.
    signed(work, source, 1, 0.5)
    refused("decisions/00000.jsonl is of an earlier run, which differs in .*tasks", "DedupClusters", lambda: filtered(work, source, 1))
    # Other documents; and of one task only.
    shutil.rmtree(tmp_path / "work" / "filtered")
    in_turn(work, source, 2, 0.8)
    signed(work, other, 2, 0.8)
    refused("pairs/000.npy is of an earlier run, which differs in .*texts", "DedupBuckets", DedupClusters(work).run)
    signed(work, source, 2, 0.8)
    DedupSignatures(work, JsonlReader(str(source)), 0.5).run(JsonlReader(str(source)).run(None, 1, 2), 1, 2)
    refused("texts/00001.bin is cut short, or of a run with another model or other tasks", "DedupSignatures", DedupBuckets(work).run)
    assert in_turn(work, source, 2, 0.8) == kept


def test_the_last_stage_does_not_go_on_with_the_decisions_of_another_run(texts, tmp_path):
    """Half of its tasks have ended; the stages before it are run again with other options, and its own logs say what is left to do."""
    source, work = tmp_path / "in", str(tmp_path / "work")
    shards(source, texts[:60], 2)

    def last(rank):
        return [document.id for document in DedupFilter(work).run(JsonlReader(str(source)).run(None, rank, 2), rank, 2)]

    for near in (0.8, 0.5):
        signed(work, source, 2, near)
        DedupBuckets(work).run()
        DedupClusters(work).run()
        if near == 0.8:
            # A task that fails is run again.
            assert last(0) == last(0)
    with pytest.raises(RuntimeError, match="task 00000 has dropped documents by the decisions of another run, .* remove the output of DedupFilter and the folder filtered"):
        last(1)
    # All tasks again leave nothing of the other run.
    assert last(0) + last(1) == [f"d{i}" for i in nearset.dedup(texts[:60], 0.5).tolist() if texts[i]]


def test_files_that_are_cut_short_or_gone_are_named(texts, tmp_path):
    source, work = tmp_path / "in", tmp_path / "work"
    shards(source, texts[:60], 2)
    kept = in_turn(str(work), source, 2)
    cases = [
        ("decisions/00001.jsonl", "DedupClusters", lambda: filtered(str(work), source, 2)),
        ("pairs/007.npy", "DedupBuckets", DedupClusters(str(work)).run),
        ("postings/00001.bin", "DedupSignatures", DedupBuckets(str(work)).run),
        ("texts/00000.bin", "DedupSignatures", DedupBuckets(str(work)).run),
    ]
    for name, stage, run in cases:
        path = work / name
        whole = path.read_bytes()
        for size in (0, 10, len(whole) - 10):
            path.write_bytes(whole[:size])
            with pytest.raises(RuntimeError, match=f"{name} is cut short.*: run all tasks of {stage}"):
                run()
        path.unlink()
        with pytest.raises(FileNotFoundError, match="let all tasks of Dedup.* end first|run DedupClusters before"):
            run()
        path.write_bytes(whole)
    assert filtered(str(work), source, 2) == kept


def test_no_flipped_bit_decides(tmp_path):
    source, work, texts = tmp_path / "in", tmp_path / "work", corpus()[:150]
    shards(source, texts, 1)
    signed(str(work), source, 1)

    def refused(name, at, run):
        path = work / name
        whole = path.read_bytes()
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        with pytest.raises(RuntimeError, match=f"{name} is .*damaged: run all tasks of Dedup"):
            run()
        path.write_bytes(whole)

    buckets, clusters = DedupBuckets(str(work)), DedupClusters(str(work))
    postings = (work / "postings" / "00000.bin").read_bytes()
    head = postings.index(b"\n") + 1
    for at in (head + 9, head + 3 * 257 * 8 + 5, len(postings) - 3, (head + 3 * 257 * 12 + len(postings)) // 2):
        refused("postings/00000.bin", at, buckets.run)
    refused("texts/00000.bin", 300, buckets.run)
    buckets.run()
    for kind in ("pairs", "copies", "members"):
        path = max((work / kind).iterdir(), key=lambda path: path.stat().st_size)
        whole = path.read_bytes()
        array = whole.index(b"\x93NUMPY")
        for at in (len(whole) - 3, whole.index(b"<i8", array) + 1):
            refused(f"{kind}/{path.name}", at, clusters.run)
    clusters.run()
    assert filtered(str(work), source, 1) == [f"d{i}" for i in nearset.dedup(texts).tolist() if texts[i]]


def test_no_document_goes_on_before_it_is_known_to_be_the_same(texts, tmp_path):
    shards(tmp_path / "in", texts[:50], 1)
    in_turn(str(tmp_path / "work"), tmp_path / "in", 1)
    path = tmp_path / "in" / "000.jsonl"
    *lines, last = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*lines, last.replace("d49", "d50")]) + "\n", encoding="utf-8")
    passed = DedupFilter(str(tmp_path / "work")).run(JsonlReader(str(tmp_path / "in")).run(None, 0, 1), 0, 1)
    with pytest.raises(RuntimeError, match="task 0 has other documents now"):
        next(passed)


def test_stages_out_of_turn_say_which_comes_first(texts, tmp_path):
    shards(tmp_path / "in", texts[:50], 1)
    work, read = str(tmp_path / "work"), JsonlReader(str(tmp_path / "in"))
    with pytest.raises(FileNotFoundError, match="run DedupSignatures with this folder first"):
        DedupBuckets(work).run()
    DedupSignatures(work, JsonlReader(str(tmp_path / "in"))).run(read.run(), 0, 1)
    with pytest.raises(FileNotFoundError, match="run DedupClusters before DedupFilter"):
        list(DedupFilter(work).run(read.run(), 0, 1))
    DedupBuckets(work).run(None, 1, 2)
    with pytest.raises(FileNotFoundError, match="lacks part 0 of 256: let all tasks of DedupBuckets end first"):
        DedupClusters(work).run()
