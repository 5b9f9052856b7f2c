"""Numbers, files and folders as a person writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.places import named_place
from pipeline.words import whole_number


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("12", 12), ("007", 7), ("9" * 18, 10**18 - 1)])
def test_decimal_digits_are_a_whole_number(text: str, number: int) -> None:
    assert whole_number(text) == number


@pytest.mark.parametrize("text", ["", "²", "1²", "-1", "+1", "1.0", "1e3", " 1", "1_000", "9" * 19, "9" * 5000])
def test_anything_else_is_none(text: str) -> None:
    assert whole_number(text) is None


def test_a_tilde_is_a_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/homes/ada")
    assert named_place("~/ws") == Path("/homes/ada/ws")
    assert named_place("ws") == Path.cwd() / "ws"
    with pytest.raises(UserError, match="there is no home folder of that user"):
        named_place("~nobody-of-this-name/ws")


def test_a_number_too_large_for_the_catalog_is_said(tmp_path: Path) -> None:
    with Catalog.open(tmp_path / "catalog.db") as catalog, pytest.raises(UserError, match="smaller numbers"):
        catalog.add_run("subset", {"seed": 10**30})
