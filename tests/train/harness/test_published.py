"""Published figures stand beside ours only where nothing differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import UserError
from train.evaluate_report import Item, report
from train.harness.published import Figure, beside, read_figures

SETTINGS = {"protocol": "awm", "window": 10, "sampling": {"temperature": 0.6}}
ITEMS = [Item(f"airline/{n}", (n < 2,), {}, {"domain": "airline"}) for n in range(4)]


def ours(**changed: Any) -> dict[str, Any]:
    made = report("tau2", "26.3", ITEMS, total=4, state="done", preset="paper", settings=SETTINGS)
    return made | changed


def figure(**changed: Any) -> Figure:
    fields = {"model": "m", "source": "a paper", "suite": "tau2", "version": "26.3", "score": 0.4, "settings": SETTINGS}
    return Figure.model_validate(fields | changed)


def test_where_nothing_differs_both_are_shown() -> None:
    found = beside(ours(), figure())
    assert (found.differs, found.ours) == ((), 0.5)
    assert beside(ours(), figure(domain="airline")).ours == 0.5


@pytest.mark.parametrize(
    ("there", "differs"),
    [
        ({"version": "26.2"}, "version: 26.2 there, 26.3 here"),
        ({"preset": "quick"}, "preset: quick there, paper here"),
        ({"settings": SETTINGS | {"window": 3}}, "window: 3 there, 10 here"),
        ({"settings": {"protocol": "awm", "window": 10}}, "sampling: not said there, {'temperature': 0.6} here"),
        ({"settings": SETTINGS | {"user": "gpt-4.1"}}, "user: gpt-4.1 there, not said here"),
        ({"domain": "retail"}, "ours has no score for retail"),
    ],
)
def test_what_differs_is_told_and_ours_is_not(there: dict[str, Any], differs: str) -> None:
    found = beside(ours(), figure(**there))
    assert (found.differs, found.ours) == ((differs,), None)


def test_a_run_that_stopped_is_not_compared() -> None:
    assert beside(ours(state="stopped"), figure()).differs == ("ours is stopped",)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[figure]]\nmodel = 'm'", "source: field required"),
        ("[[figure]]\nmodel='m'\nsource='s'\nsuite='tau2'\nversion='1'\nscore=nan\nsettings={}", "score: "),
        ("[[figure]", "is not TOML"),
    ],
)
def test_a_file_that_is_wrong_is_told_with_the_field(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "figures.toml").write_text(text)
    with pytest.raises(UserError, match=told):
        read_figures(tmp_path / "figures.toml")
