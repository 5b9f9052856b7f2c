"""Old Pythons tell the f-strings of Python 3.12 from mistakes."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.runtime.dialect import needs_newer_python

pytestmark = pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python has the f-strings of 3.12")


@pytest.mark.filterwarnings("ignore:invalid escape sequence")
@pytest.mark.parametrize(
    "source",
    [
        'f"{d["a"]}"',
        """x = f'{d['a']!r:>{w}} {{}} {y=} {z = }'""",
        'f"{x!r:{"a"}}"',
        'f"{", ".join(names)}\\n{"\\n".join(x)}"',
        "f'{\nx # a comment\n}'",
        'f"{f"{f"{1}"}"}"',
        'f"{a != b} {a == b} {a <= b} {x:%H:%M} {(lambda q: q)(1)} {d["k"]:,.2f}"',
        'if x:\n    y = f"{d["a"]}" + "b" \'c\' f\'d\'\n',
        'x = rf"{d["a"]}\\d", Rb"" if 0 else "# no comment"',
        'f"""{d["""x"""]}\n{y}"""',
        'f"\\N{EM DASH} \\{d["a"]}"',
        "async def f():\n    return f'{await g('x')} {[a for a in b if a['c']]} {({'k': 1})['k']}'",
    ],
)
def test_new_f_strings_are_recognised(source: str) -> None:
    with pytest.raises(SyntaxError):
        ast.parse(source)
    assert needs_newer_python(source) == "3.12"


@pytest.mark.parametrize(
    "source",
    [
        "x = (",
        "def f(:\n  pass",
        'f"{d["a"}"',
        'f"{}" + d["a',
        'print "x"',
        'f"{d["a"]}" )',
        "y = 'it's'",
        "f'{d['a']' + 1",
        "f'{",
        "f'{x!'",
        "f'{x:'",
        'f"{d["a"] d["b"]}"',
        'f"""{x}',
        "'abc",
        "type X = int",
    ],
)
def test_mistakes_stay_mistakes(source: str) -> None:
    assert needs_newer_python(source) is None


def test_valid_source_is_never_misread() -> None:
    files = sorted((Path(__file__).parents[3] / "pipeline").rglob("*.py"))
    standard = sorted(Path(ast.__file__).parent.glob("*.py"))[:8]
    for path in [*files, *standard]:
        assert needs_newer_python(path.read_text("utf-8")) == "3.12", path


@given(st.text(alphabet="f'\"{}\\!:= \nabr#[]()"))
def test_no_text_makes_it_fail(source: str) -> None:
    assert needs_newer_python(source) in (None, "3.12")
