"""`import`, `export`, `list`, `show` and the summary: what they print, and their exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.model import Author, AuthorKind, Part
from pipeline.workspace import Workspace
from studio.cli import awm_studio

CODE = "def verify_task_completion(initial_db_path, final_db_path):\n    return {}\n"

Studio = Callable[..., Result]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


@pytest.fixture
def studio(workspace: Path) -> Studio:
    """Run `awm-studio` on the test's workspace in this process."""

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(awm_studio, ["--workspace", str(workspace), *arguments])

    return run


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = tmp_path / "release"
    folder.mkdir()
    files: dict[str, list[dict[str, Any]]] = {
        "scenario": [{"name": "My Shop", "description": "It sells \x1b[31mred\x1b[0m things."}],
        "tasks": [{"scenario": "My Shop", "tasks": ["Buy.", "Sell."]}],
        "db": [{"scenario": "My Shop", "db_schema": {"tables": [{"name": "t", "ddl": "CREATE TABLE t(a)"}]}}],
        "sample": [
            {"scenario": "My Shop", "sample_data": {"tables": [{"table_name": "t", "insert_statements": ["I1", "I2"]}]}}
        ],
        "spec": [
            {
                "scenario": "My Shop",
                "api_spec": {
                    "api_groups": [{"endpoints": [{"operation_id": "get_t", "method": "get", "path": "/t"}]}],
                },
            }
        ],
        "envs": [{"scenario": "My Shop", "full_code": "app = 'é'\n"}],
        "verifier": [
            {"scenario": "my_shop", "task_idx": task, "verification": {"code": CODE + f"# {task}"}}
            for task in (0, 1, 0)
        ],
    }
    for name, rows in files.items():
        (folder / f"gen_{name}.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    with (folder / "gen_tasks.jsonl").open("ab") as file:
        file.write(b'{"scenario": "clinic", "tasks": []}\n{"scenario": "half')
    return folder


@pytest.fixture
def filled(studio: Studio, release: Path) -> None:
    assert studio("import", str(release)).exit_code == 0


class TestImport:
    def test_json_has_the_keys_that_others_rely_on(self, studio: Studio, release: Path) -> None:
        result = studio("import", str(release), "--json")
        assert result.exit_code == 0
        report = json.loads(result.stdout)
        assert (report["environments"], report["tasks"], report["verifiers"]) == (2, 2, {"code": 2, "sql": 0})
        assert report["duplicates"] == 1
        assert report["malformed"] == [
            {"file": "gen_tasks.jsonl", "line": 3, "error": "is not JSON: unexpected end of data at column 19"}
        ]
        assert report["missing"] == [
            {"scenario": "clinic", "parts": ["scenario", "tasks", "schema", "sample", "spec", "code", "verifier"]}
        ]

    def test_people_get_tables_that_say_the_same(self, studio: Studio, release: Path) -> None:
        printed = studio("import", str(release)).stdout
        for line in (
            "gen_verifier.jsonl            3",
            "gen_tasks.jsonl:3  is not JSON",
            "gen_verifier.jsonl:3  my_shop",
        ):
            assert line in printed
        assert "clinic       scenario, tasks, schema" in printed

    def test_again_changes_nothing(self, studio: Studio, release: Path, filled: None) -> None:
        assert json.loads(studio("import", str(release), "--json").stdout)["changed"] == 0

    def test_now_is_pinned_and_utc_unless_it_says_otherwise(
        self, studio: Studio, release: Path, workspace: Path
    ) -> None:
        for given, kept in {
            "2026-03-01T09:00:00": "2026-03-01T09:00:00+00:00",
            "2026-03-01T09:00:00+02:00": "2026-03-01T09:00:00+02:00",
            "2026-03-01": "2026-03-01T00:00:00+00:00",
        }.items():
            assert studio("import", str(release), "--now", given).exit_code == 0
            assert json.loads(studio("show", "my_shop", "--json").stdout)["now"] == kept

    def test_a_wrong_path_makes_no_workspace(self, studio: Studio, workspace: Path) -> None:
        result = studio("import", "nowhere")
        assert isinstance(result.exception, UserError)
        assert not workspace.exists()


class TestList:
    def test_json(self, studio: Studio, filled: None) -> None:
        clinic, shop = json.loads(studio("list", "--json").stdout)["environments"]
        assert shop == {
            "name": "my_shop",
            "title": "My Shop",
            "origin": "import",
            "domain": None,
            "tables": 1,
            "rows": 2,
            "tools": 1,
            "tasks": 2,
            "verifiers": {"code": 2, "sql": 0},
            "missing": [],
            "check": None,
            "audit": None,
            "concept": None,
            "aside": None,
            "review": None,
        }
        assert (clinic["name"], clinic["tables"]) == ("clinic", None)

    def test_a_row_is_a_line_and_columns_nobody_knows_are_left_out(self, studio: Studio, filled: None) -> None:
        header, clinic, shop = studio("list").stdout.splitlines()
        assert header.split() == ["name", "origin", "tables", "rows", "tools", "tasks", "verifiers", "missing"]
        assert shop.split() == ["my_shop", "import", "1", "2", "1", "2", "2+0"]
        assert clinic.split()[:3] == ["clinic", "import", "0"]

    def test_without_a_workspace_it_says_how_to_get_one(self, studio: Studio) -> None:
        result = studio("list")
        assert isinstance(result.exception, UserError)
        assert "awm-studio import" in str(result.exception)


class TestShow:
    def test_json_has_the_parts(self, studio: Studio, filled: None) -> None:
        shown = json.loads(studio("show", "My Shop", "--json").stdout)
        assert (shown["name"], shown["tasks"], shown["code"]) == ("my_shop", ["Buy.", "Sell."], "app = 'é'\n")
        assert shown["schema"] == [{"name": "t", "ddl": "CREATE TABLE t(a)", "indexes": []}]
        assert [(v["task"], v["mode"]) for v in shown["verifiers"]] == [(0, "code"), (1, "code")]

    def test_one_part_and_one_task(self, studio: Studio, filled: None) -> None:
        shown = json.loads(studio("show", "my_shop", "--part", "verifiers", "--task", "1", "--json").stdout)
        assert shown == {"name": "my_shop", "verifiers": [{"task": 1, "mode": "code", "code": CODE + "# 1"}]}

    @pytest.mark.parametrize(
        ("part", "text"),
        [
            ("tasks", "0. Buy.\n1. Sell.\n"),
            ("schema", "CREATE TABLE t(a)\n"),
            ("sample", "I1\nI2\n"),
            ("code", "app = 'é'\n"),
        ],
    )
    def test_a_part_is_printed_as_it_is(self, studio: Studio, filled: None, part: str, text: str) -> None:
        assert studio("show", "my_shop", "--part", part).stdout == text

    def test_the_overview_names_everything(self, studio: Studio, filled: None) -> None:
        printed = studio("show", "my_shop").stdout
        for word in ("My Shop (my_shop)", "Buy.", "Sell.", "get_t", "GET /t", "import release", "2026-01-01T12:00:00"):
            assert word in printed

    def test_an_environment_with_hardly_anything(self, studio: Studio, filled: None) -> None:
        for part in ("scenario", "tasks", "schema", "sample", "code", "verifiers", "solutions"):
            assert studio("show", "clinic", "--part", part).exit_code == 0
        assert "missing" in studio("show", "clinic").stdout

    def test_an_unknown_one_gets_close_names(self, studio: Studio, filled: None) -> None:
        assert "Did you mean my_shop" in str(studio("show", "myshop").exception)

    def test_a_task_it_does_not_have_is_said(self, studio: Studio, filled: None) -> None:
        result = studio("show", "my_shop", "--part", "verifiers", "--task", "77")
        assert isinstance(result.exception, UserError)
        assert "my_shop has no task 77; it has tasks 0 to 1" in str(result.exception)


class TestExport:
    def test_json_has_rows_and_digests(self, studio: Studio, filled: None, tmp_path: Path) -> None:
        files = json.loads(studio("export", str(tmp_path / "out"), "--json").stdout)["files"]
        assert files["gen_verifier.pure_code.jsonl"]["rows"] == 2
        assert all(len(file["sha256"]) == 64 for file in files.values())
        assert sorted(files) == sorted(path.name for path in (tmp_path / "out").iterdir())

    def test_only_those_named(self, studio: Studio, filled: None, tmp_path: Path) -> None:
        files = json.loads(studio("export", str(tmp_path / "out"), "clinic", "--json").stdout)["files"]
        assert {name: file["rows"] for name, file in files.items()} == {"gen_scenario.jsonl": 1, "gen_tasks.jsonl": 1}


class TestSummary:
    def test_where_there_is_no_workspace_it_says_what_to_type(self, studio: Studio, workspace: Path) -> None:
        result = studio()
        assert result.exit_code == 0
        assert f"No workspace at {workspace} yet" in result.stdout
        assert "awm-studio import FOLDER" in result.stdout
        assert not workspace.exists()

    def test_an_empty_one_too(self, studio: Studio, workspace: Path) -> None:
        Workspace.open(workspace, create=True).close()
        result = studio()
        assert result.exit_code == 0
        assert "0 environments" in result.stdout
        assert "awm-studio synth" in result.stdout

    def test_a_filled_one_says_what_it_holds(self, studio: Studio, filled: None) -> None:
        result = studio()
        assert result.exit_code == 0
        for words in ("2 environments", "my_shop", "clinic", "2 not checked", "awm-studio check --all"):
            assert words in result.stdout

    def test_one_is_an_environment_and_of_many_the_first_are_named(self, studio: Studio, workspace: Path) -> None:
        person = Author(AuthorKind.person, "test")
        Workspace.open(workspace, create=True).close()
        with Catalog.open(workspace / "catalog.db") as catalog:
            catalog.put("shop_00", Part.tasks, '["Buy."]', author=person)
            assert "1 environment\n" in studio().stdout
            for number in range(1, 24):
                catalog.put(f"shop_{number:02}", Part.tasks, '["Buy."]', author=person)
        result = studio()
        assert "shop_19" in result.stdout
        assert "shop_20" not in result.stdout
        assert "… and 4 more: awm-studio list" in result.output


class TestProcess:
    """What only a process shows: exit codes, streams, and a terminal."""

    def run(self, workspace: Path, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "studio.cli", *arguments, "--workspace", str(workspace)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)

    def test_what_cannot_be_done_is_exit_2_and_one_sentence(self, workspace: Path, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        for arguments in (
            ("import", str(tmp_path / "empty")),
            ("import", "hf:not a name"),
            ("show", "shop"),
        ):
            done = self.run(workspace, *arguments)
            assert (done.returncode, done.stdout) == (2, ""), arguments
            assert done.stderr.startswith("awm-studio: ")
            assert len(done.stderr.splitlines()) == 1

    def test_the_hub_out_of_reach_is_a_sentence(self, workspace: Path, tmp_path: Path) -> None:
        offline = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
        done = self.run(workspace, "import", "hf:Snowflake/AgentWorldModel-1K", env=offline)
        assert (done.returncode, done.stdout) == (2, "")
        assert "Snowflake/AgentWorldModel-1K could not be downloaded" in done.stderr
        assert "import its folder" in done.stderr

    def test_control_characters_do_not_reach_a_terminal(self, workspace: Path, release: Path) -> None:
        import pty

        assert self.run(workspace, "import", str(release)).returncode == 0
        command = [sys.executable, "-m", "studio.cli", "show", "my_shop", "--part", "scenario", "-w", str(workspace)]
        main, side = pty.openpty()
        with subprocess.Popen(command, stdin=side, stdout=side, stderr=side) as child:
            os.close(side)
            shown = b""
            while chunk := read_terminal(main):
                shown += chunk
            assert child.wait(timeout=60) == 0
        os.close(main)
        assert "It sells ␛[31mred␛[0m things." in shown.decode()


def read_terminal(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # how Linux says that the other side is closed
        return b""


def test_an_option_beats_the_environment_wherever_it_stands(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWM_WORKSPACE", str(tmp_path / "from-the-environment"))
    before, after = str(tmp_path / "before"), str(tmp_path / "after")
    assert CliRunner().invoke(awm_studio, ["-w", before, "import", str(release)]).exit_code == 0
    assert CliRunner().invoke(awm_studio, ["import", "-w", after, str(release)]).exit_code == 0
    assert (Path(before) / "catalog.db").is_file()
    assert (Path(after) / "catalog.db").is_file()
    assert not (tmp_path / "from-the-environment").exists()
