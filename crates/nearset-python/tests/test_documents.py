"""Every example runs: those of docstrings, and the Python of README, guide and package page."""

import doctest
import inspect
import re
from contextlib import ExitStack
from functools import partial

import nearset.datasketch
import nearset.datatrove
import nearset.polars
import nearset.spark
import nearset.valkey
import pytest
import redis
from conftest import ROOT
from servers import Server, binaries

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def documented():
    for module in (nearset, nearset.datasketch, nearset.datatrove, nearset.polars, nearset.spark, nearset.valkey):
        yield module.__name__, module
        for name in module.__all__:
            thing, name = getattr(module, name), f"{module.__name__}.{name}"
            yield name, thing
            if inspect.isclass(thing):
                members = ((member, getattr(thing, member)) for member in vars(thing) if not member.startswith("_"))
                yield from ((f"{name}.{member}", value) for member, value in members if not inspect.ismemberdescriptor(value))


@pytest.mark.parametrize("name", [name for name, _ in documented()])
def test_public_names_are_documented_and_their_examples_run(name):
    thing = dict(documented())[name]
    document = inspect.getdoc(thing)
    assert document, f"{name} has no docstring"
    test = doctest.DocTestParser().get_doctest(document, {}, name, None, None)
    outcome = doctest.DocTestRunner(optionflags=FLAGS).run(test)
    assert outcome.failed == 0


def test_the_classes_and_functions_have_examples():
    without = [name for name in ("BloomFilter", "HammingFilter", "FilterSpec", "HammingIndex", "LshIndex", "MinHash", "NearFilter", "Request", "decontaminate", "dedup", "plan", "plan_index")
               if ">>>" not in (inspect.getdoc(getattr(nearset, name)) or "")]
    assert without == []


def blocks():
    pages = [ROOT / "README.md", ROOT / "crates" / "nearset-python" / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
    for page in pages:
        for found in re.finditer(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M):
            line = page.read_text(encoding="utf-8")[: found.start()].count("\n") + 2
            yield page, line, found.group(1)


PAGES = sorted({page for page, _, _ in blocks()})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_blocks_of_a_page_run_in_order(page, tmp_path, monkeypatch, request):
    """The blocks of a page share their names, as in a session; files are those of the repository's root."""
    for entry in ROOT.iterdir():
        if entry.name in ("examples", "docs"):
            (tmp_path / entry.name).symlink_to(entry)
    monkeypatch.chdir(tmp_path)
    if page.name == "spark.md":
        # What the page gets or creates; it has a working directory of its own, that of its start.
        session = request.getfixturevalue("spark")
        files = session._jvm.org.apache.hadoop.fs
        files.FileSystem.get(session._jsc.hadoopConfiguration()).setWorkingDirectory(files.Path(str(tmp_path)))
    names: dict[str, object] = {"__name__": "__main__"}
    wanted = [(line, code) for other, line, code in blocks() if other == page]
    with ExitStack() as stack:
        if any("nearset.valkey" in code for _, code in wanted):
            # Where a page's server would listen, another one of ours does.
            server = Server(next(iter(binaries().values())), tmp_path / "server", request.getfixturevalue("near_module"))
            stack.enter_context(server)
            monkeypatch.setattr(redis, "Redis", partial(redis.Redis, port=server.port))
        for line, code in wanted:
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)
