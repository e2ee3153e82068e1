"""The stubs of the compiled part say what it says of itself, so that editors show it. Run as a program, this writes it into them."""

import ast
import inspect
import sys
import textwrap
from pathlib import Path

from nearset import _core

STUBS = Path(__file__).resolve().parents[1] / "python" / "nearset" / "_core.pyi"


def _member(owner, name):
    """What a class or one that it inherits from has under a name; of static methods, the function."""
    value = inspect.getattr_static(owner, name, None)
    return value.__func__ if isinstance(value, staticmethod) else value


def described(source):
    """The stubs with the docstrings that the compiled part has."""
    lines, added = source.splitlines(), []
    for outer in ast.parse(source).body:
        if not isinstance(outer, (ast.ClassDef, ast.FunctionDef)) or not hasattr(_core, outer.name):
            continue
        thing = getattr(_core, outer.name)
        inner = outer.body if isinstance(outer, ast.ClassDef) else []
        methods = [(node, _member(thing, node.name)) for node in inner if isinstance(node, ast.FunctionDef) and not node.name.startswith("__")]
        for node, value in [(outer, thing), *methods]:
            document = inspect.getdoc(value) if value is not None and not node.name.startswith("_") else None
            if document:
                added.append((node, document))
    for node, document in sorted(added, key=lambda pair: -pair[0].lineno):
        indent, first = " " * (node.col_offset + 4), node.body[0]
        has_own = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
        quoted = document.replace("\\", "\\\\")
        text = textwrap.indent('"""' + quoted + ('\n"""' if "\n" in quoted else '"""'), indent).splitlines()
        if has_own:
            lines[first.lineno - 1 : first.end_lineno] = text
        elif lines[first.lineno - 1].endswith(": ..."):
            lines[first.lineno - 1 : first.end_lineno] = [lines[first.lineno - 1].removesuffix(" ..."), *text]
        else:
            at = min(one.lineno for one in (first, *getattr(first, "decorator_list", []))) - 1
            lines[at:at] = text
    return "\n".join(lines) + "\n"


def test_stubs_are_described_as_what_they_stand_for():
    source = STUBS.read_text(encoding="utf-8")
    assert source == described(source), f"run {Path(__file__).name} as a program where nearset is installed"
    assert "Convert a function to be a static method" not in source
    public = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    assert len(public) > 15 and not [node.name for node in public if ast.get_docstring(node) is None]


if __name__ == "__main__":
    STUBS.write_text(described(STUBS.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote {STUBS}", file=sys.stderr)
