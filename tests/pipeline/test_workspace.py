"""Where a workspace is found, how it is made, and what is not one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline import settings
from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.model import Author, AuthorKind, Part
from pipeline.settings import Settings
from pipeline.workspace import Workspace, locate


def test_a_workspace_is_made_where_that_is_allowed_and_opened_again(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "workspace"
    with Workspace.open(folder, create=True) as made:
        made.catalog.put("shop", Part.code, "app = 1", author=Author(AuthorKind.person))
        assert made.databases.is_dir() and made.runs.is_dir() and made.logs.is_dir()
    with Workspace.open(folder) as opened:
        assert opened.path == folder
        assert opened.catalog.names() == ["shop"]


def test_an_empty_folder_becomes_one(tmp_path: Path) -> None:
    with Workspace.open(tmp_path, create=True):
        assert (tmp_path / "catalog.db").is_file()


def test_a_making_that_was_interrupted_is_finished(tmp_path: Path) -> None:
    (tmp_path / "databases").mkdir()
    with Workspace.open(tmp_path, create=True) as opened:
        assert opened.catalog.names() == []


def test_nothing_is_made_unasked(tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    with pytest.raises(UserError, match=r"no workspace at .*workspace yet"):
        Workspace.open(folder)
    assert not folder.exists()


@pytest.mark.parametrize("create", [True, False])
def test_a_folder_with_other_things_is_not_one(tmp_path: Path, create: bool) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UserError, match="is not a workspace"):
        Workspace.open(tmp_path, create=create)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_is_not_one(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="is a file, not a workspace"):
        Workspace.open(tmp_path / "file", create=True)


def test_a_place_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"is a file|cannot be"):
        Workspace.open(tmp_path / "file" / "workspace", create=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_says_so(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UserError, match="cannot be written to"):
        Workspace.open(tmp_path / "workspace", create=True)


class TestTheUsualPlace:
    def test_the_argument_wins_then_the_variable(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWM_WORKSPACE", str(tmp_path / "variable"))
        assert locate(tmp_path / "argument") == tmp_path / "argument"
        assert locate() == tmp_path / "variable"

    def test_then_the_one_in_the_current_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "awm-workspace").mkdir()
        assert locate() == tmp_path / "awm-workspace"

    def test_then_the_users_data_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
        assert locate() == tmp_path / "data" / "awm-studio" / "workspace"


def test_the_catalog_may_be_elsewhere(tmp_path: Path) -> None:
    elsewhere = tmp_path / "shared.db"
    settings.save(Settings(database_url=f"sqlite:///{elsewhere}"))
    folder = tmp_path / "workspace"
    with Workspace.open(folder, create=True) as made:
        made.catalog.put("shop", Part.code, "app = 1", author=Author(AuthorKind.person))
    assert not (folder / "catalog.db").exists()
    with Workspace.open(folder) as opened, Catalog.open(elsewhere) as catalog:
        assert opened.catalog.names() == catalog.names() == ["shop"]


def test_two_may_be_open_at_once(tmp_path: Path) -> None:
    with Workspace.open(tmp_path, create=True) as one, Workspace.open(tmp_path) as two:
        one.catalog.put("shop", Part.code, "app = 1", author=Author(AuthorKind.person))
        two.catalog.put("shop", Part.code, "app = 2", author=Author(AuthorKind.person))
        assert one.catalog.environment("shop").code == "app = 2"
