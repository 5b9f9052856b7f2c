"""Bringing in the AWM layout: how rows are joined, what is kept, and what is said about the rest."""

from __future__ import annotations

import builtins
import gzip
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from curation.importers import Duplicate, ImportReport, Malformed, Progress, download, import_awm
from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.model import DEFAULT_NOW, Author, AuthorKind, Mode, Part

CODE = "def verify_task_completion(initial_db_path, final_db_path, final_answer=None):\n    return {}\n"
SQL = "def verify_task(initial_db_path, final_db_path):\n    return {}\n"

Row = dict[str, Any]


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog.open(tmp_path / "catalog.db") as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "outputs").mkdir()
    return tmp_path / "outputs"


@pytest.fixture
def bring(catalog: Catalog, folder: Path) -> Callable[..., ImportReport]:
    """Write rows (or bytes) into the folder by file name, and import it."""

    def write_and_import(progress: Progress | None = None, **files: list[Row] | bytes) -> ImportReport:
        for name, rows in files.items():
            data = rows if isinstance(rows, bytes) else b"".join(orjson.dumps(row) + b"\n" for row in rows)
            (folder / f"gen_{name}.jsonl").write_bytes(data)
        return import_awm(catalog, folder, progress=progress)

    return write_and_import


def verifier(scenario: str, number: int, code: str = CODE, **beside: Any) -> Row:
    return {"scenario": scenario, "task_idx": number, "verification": {"code": code}, **beside}


WHOLE: dict[str, list[Row] | bytes] = {
    "scenario": [{"name": "My Shop (2)", "description": "Sells."}],
    "tasks": [{"scenario": "my shop 2", "tasks": ["Buy.", "Sell."]}],
    "db": [{"scenario": "My Shop (2)", "db_schema": {"tables": [{"name": "t", "ddl": "CREATE TABLE t(a);"}]}}],
    "sample": [
        {"scenario": "My Shop (2)", "sample_data": {"tables": [{"table_name": "t", "insert_statements": ["x", "y"]}]}}
    ],
    "spec": [
        {
            "scenario": "My Shop (2)",
            "api_spec": {
                "api_groups": [
                    {"group_name": "T", "endpoints": [{"operation_id": "get_t", "method": "GET", "path": "/t"}]}
                ]
            },
        }
    ],
    "envs": [{"scenario": "my_shop_2", "full_code": "app = 1"}],
    "verifier": [verifier("my_shop_2", 0, SQL), verifier("my_shop_2", 1)],
}


class TestJoining:
    def test_rows_are_joined_by_normalised_name(self, bring: Callable[..., ImportReport], catalog: Catalog) -> None:
        report = bring(**WHOLE)
        assert (report.environments, report.tasks, report.verifiers) == (1, 2, {"code": 1, "sql": 1})
        assert (report.duplicates, report.malformed, report.missing) == ([], [], [])
        [name] = catalog.names()
        env = catalog.environment(name)
        assert (env.name, env.title, env.description, env.origin) == ("my_shop_2", "My Shop (2)", "Sells.", "import")
        assert (env.tasks, env.code, env.missing, env.now) == (("Buy.", "Sell."), "app = 1", (), DEFAULT_NOW)
        assert [(v.task, v.mode, v.code) for v in env.verifiers] == [(0, Mode.sql, SQL), (1, Mode.code, CODE)]

    def test_importing_again_changes_nothing(self, bring: Callable[..., ImportReport], catalog: Catalog) -> None:
        first = bring(**WHOLE)
        versions = [version for name in catalog.names() for version in catalog.current(name)]
        again = bring(**WHOLE)
        assert (first.changed, again.changed) == (8, 0)
        assert [version for name in catalog.names() for version in catalog.current(name)] == versions

    def test_importing_again_does_not_undo_an_edit(self, bring: Callable[..., ImportReport], catalog: Catalog) -> None:
        bring(**WHOLE)
        catalog.put("my_shop_2", Part.code, "app = 2", author=Author(AuthorKind.person, "me"), title="Renamed")
        assert bring(**WHOLE).changed == 0
        env = catalog.environment("my_shop_2")
        assert (env.code, env.title) == ("app = 2", "Renamed")

    def test_the_author_of_what_is_imported_is_its_folder(
        self, bring: Callable[..., ImportReport], catalog: Catalog
    ) -> None:
        bring(**WHOLE)
        assert {v.author for v in catalog.current("my_shop_2")} == {Author(AuthorKind.imported, "outputs")}

    def test_two_titles_of_one_name_are_told(self, bring: Callable[..., ImportReport], catalog: Catalog) -> None:
        report = bring(
            scenario=[{"name": "A-B", "description": "first"}, {"name": "A b!", "description": "second"}],
            tasks=[{"scenario": "A b!", "tasks": ["x"]}],
        )
        assert report.duplicates == [Duplicate("gen_scenario.jsonl", 2, "a_b", "scenario", None, ("A-B", "A b!"))]
        env = catalog.environment("a_b")
        assert (env.title, env.description) == ("A-B", "first")

    def test_the_first_of_duplicates_counts(self, bring: Callable[..., ImportReport], catalog: Catalog) -> None:
        report = bring(
            verifier=[verifier("shop", 3, CODE + "#1"), verifier("shop", 3, CODE + "#2"), verifier("shop", 3, SQL)]
        )
        assert report.duplicates == [Duplicate("gen_verifier.jsonl", 2, "shop", "verifier", 3)]
        assert [v.code for v in catalog.environment("shop").verifiers] == [CODE + "#1", SQL]

    def test_names_of_paths_stay_names(
        self, bring: Callable[..., ImportReport], catalog: Catalog, tmp_path: Path
    ) -> None:
        bring(tasks=[{"scenario": "../../x", "tasks": []}, {"scenario": "C:\\x\ny\x1b[2J", "tasks": []}])
        assert catalog.names() == ["c_x_y_2j", "x"]
        assert [row.title for row in catalog.summaries()] == ["C:\\x y [2J", "../../x"]

    def test_the_title_is_the_one_of_the_scenario_file_whenever_it_comes(
        self, bring: Callable[..., ImportReport], catalog: Catalog
    ) -> None:
        bring(verifier=[verifier("my_shop", 0)])
        assert catalog.summary("my_shop").title == "my_shop"
        bring(scenario=[{"name": "My Shop", "description": "x"}])
        assert catalog.summary("my_shop").title == "My Shop"


class TestVerifierModes:
    @pytest.mark.parametrize(
        ("code", "mode"),
        [
            (CODE, Mode.code),
            (SQL, Mode.sql),
            ("async def verify_task_completion(a): ...", Mode.code),
            ("def verify_task_completion(a):\n  return {'x': ", Mode.code),
            ('"""\ndef verify_task(a): example\n"""\n' + CODE, Mode.code),
            (f'"""\n{SQL}"""\nif True:\n    def verify_task_completion(a): ...', Mode.code),
            ("def helper(): ...\n\n" + SQL, Mode.sql),
        ],
    )
    @pytest.mark.parametrize("file", ["verifier", "verifier.pure_code"])
    def test_the_code_tells_the_mode_whichever_file_it_is_in(
        self, bring: Callable[..., ImportReport], catalog: Catalog, code: str, mode: Mode, file: str
    ) -> None:
        bring(**{file: [verifier("shop", 0, code)]})
        assert [v.mode for v in catalog.environment("shop").verifiers] == [mode]

    @pytest.mark.parametrize("code", ["", "nothing to see", "def verify(", "(" * 500, "x = '\0'"])
    def test_code_that_does_not_tell_gets_the_mode_of_its_file(
        self, bring: Callable[..., ImportReport], catalog: Catalog, code: str
    ) -> None:
        bring(**{"verifier.pure_code": [verifier("shop", 0, code)], "verifier": [verifier("shop", 1, code)]})
        assert [(v.task, v.mode) for v in catalog.environment("shop").verifiers] == [(0, Mode.code), (1, Mode.sql)]


class TestKeeping:
    def test_unknown_keys_are_kept_beside_the_content(
        self, bring: Callable[..., ImportReport], catalog: Catalog
    ) -> None:
        bring(
            sample=[{"scenario": "shop", "sample_data": {"tables": []}, "tables_count": 0, "by": {"model": "m"}}],
            verifier=[{**verifier("shop", 0), "verification": {"code": CODE, "raw_response": "I think"}, "score": 1.5}],
        )
        extras = {version.part: catalog.extra(version) for version in catalog.current("shop")}
        assert extras == {
            Part.sample: {"tables_count": 0, "by": {"model": "m"}},
            Part.verifier: {"verification": {"raw_response": "I think"}, "score": 1.5},
        }

    def test_a_second_name_is_an_unknown_key(self, bring: Callable[..., ImportReport], catalog: Catalog) -> None:
        bring(tasks=[{"name": "Bob", "scenario": "shop", "tasks": []}, {"name": "clinic", "tasks": []}])
        assert [catalog.extra(version) for version in catalog.current("shop")] == [{"name": "Bob"}]
        assert [catalog.extra(version) for version in catalog.current("clinic")] == [{}]

    def test_what_an_export_gives_back_anyway_is_not(
        self, bring: Callable[..., ImportReport], catalog: Catalog
    ) -> None:
        bring(
            tasks=[{"scenario": "Shop", "tasks": ["Buy."]}],
            db=[{"scenario": "Shop", "db_schema": {"tables": []}, "db_path": "./outputs/databases/shop.db"}],
            envs=[{"scenario": "Shop", "full_code": "", "db_path": "/home/jane/databases/shop.db"}],
            verifier=[verifier("Shop", 0, task="Buy."), verifier("Shop", 1, task="Sell.")],
        )
        extras = {(v.part, v.slot): catalog.extra(v) for v in catalog.current("shop")}
        assert {key: extra for key, extra in extras.items() if extra} == {(Part.verifier, "1/code"): {"task": "Sell."}}

    def test_gzipped_files_are_read_too(
        self, bring: Callable[..., ImportReport], folder: Path, catalog: Catalog
    ) -> None:
        (folder / "gen_tasks.jsonl.gz").write_bytes(gzip.compress(b'{"scenario": "zipped", "tasks": ["x"]}\n'))
        report = bring(tasks=[{"scenario": "plain", "tasks": []}])
        assert report.files == {"gen_tasks.jsonl": 1, "gen_tasks.jsonl.gz": 1}
        assert catalog.names() == ["plain", "zipped"]

    def test_now_is_given_to_every_environment(
        self, bring: Callable[..., ImportReport], catalog: Catalog, folder: Path
    ) -> None:
        bring(**WHOLE)
        now = datetime(2026, 3, 1, 9, tzinfo=UTC)
        assert import_awm(catalog, folder, now=now).changed == 0
        assert catalog.environment("my_shop_2").now == now

    def test_solutions_are_read_from_the_file_that_exports_write(
        self, bring: Callable[..., ImportReport], catalog: Catalog
    ) -> None:
        solution = {"calls": [{"tool": "buy", "arguments": {"n": 1}}], "answer": "done"}
        bring(solution=[{"scenario": "shop", "task_idx": 2, "solution": solution}])
        [found] = catalog.environment("shop").solutions
        assert (found.task, found.calls[0].tool, found.answer) == (2, "buy", "done")


class TestFaults:
    def test_missing_files_and_parts_are_facts(self, bring: Callable[..., ImportReport]) -> None:
        report = bring(tasks=[{"scenario": "shop", "tasks": ["x"]}], envs=[{"scenario": "clinic", "full_code": "x"}])
        assert report.missing_files == [
            "gen_scenario.jsonl",
            "gen_db.jsonl",
            "gen_sample.jsonl",
            "gen_spec.jsonl",
            "gen_verifier.pure_code.jsonl",
            "gen_verifier.jsonl",
        ]
        database = (Part.schema, Part.sample, Part.spec)
        assert report.missing == [
            ("clinic", (Part.scenario, Part.tasks, *database, Part.verifier)),
            ("shop", (Part.scenario, *database, Part.code, Part.verifier)),
        ]

    @pytest.mark.parametrize(
        ("file", "row", "error"),
        [
            ("tasks", 7, "is a whole number, not an object"),
            ("tasks", {"tasks": []}, "has no scenario"),
            ("tasks", {"scenario": 7, "tasks": []}, "scenario is a whole number, not text"),
            ("tasks", {"scenario": "日本", "tasks": []}, "the scenario name '日本' has no letter a-z or digit to join its parts by"),
            ("tasks", {"scenario": "x" * 201, "tasks": []}, "the scenario name is 201 characters long; at most 200 are taken"),
            ("tasks", {"scenario": "bad", "tasks": "Buy."}, "tasks is text, not a list"),
            ("tasks", {"scenario": "bad"}, "has no tasks"),
            ("db", {"scenario": "bad", "db_schema": None}, "db_schema is null, not an object"),
            ("envs", {"scenario": "bad", "full_code": ["x"]}, "full_code is a list, not text"),
            ("verifier", {"scenario": "bad", "task_idx": 0, "verification": {}}, "has no verification.code"),
            ("verifier", verifier("bad", 0) | {"verification": "x"}, "verification is text, not an object"),
            ("verifier", verifier("bad", 0) | {"task_idx": "0"}, "task_idx is text, not a whole number"),
            ("verifier", verifier("bad", 0) | {"task_idx": True}, "task_idx is true or false, not a whole number"),
            ("verifier", verifier("bad", -1), "task_idx is -1; tasks are numbered from 0, below 10,000"),
            ("scenario", {"name": None}, "name is null, not text"),
        ],
    )  # fmt: skip
    def test_a_row_that_cannot_be_used_is_told_and_the_rest_kept(
        self, bring: Callable[..., ImportReport], catalog: Catalog, file: str, row: Any, error: str
    ) -> None:
        good = {"scenario": "good", "name": "good", "tasks": [], "db_schema": {}, "full_code": ""} | verifier("good", 1)
        report = bring(**{file: [row, good]})
        assert report.malformed == [Malformed(f"gen_{file}.jsonl", 1, error)]
        assert catalog.names() == ["good"]

    def test_what_is_wrong_inside_a_part_is_told_and_the_part_kept(
        self, bring: Callable[..., ImportReport], catalog: Catalog
    ) -> None:
        tables = [{"name": "t", "ddl": 5}, {"name": "u", "ddl": "CREATE TABLE u(a)", "indexes": ["i", None]}, 3]
        report = bring(
            db=[{"scenario": "shop", "db_schema": {"tables": tables}}],
            spec=[{"scenario": "shop", "api_spec": {"api_groups": {}}}],
        )
        assert [(fault.file, fault.line, fault.error) for fault in report.malformed] == [
            ("gen_db.jsonl", 1, "db_schema: tables[0].ddl is a whole number, not text"),
            ("gen_db.jsonl", 1, "db_schema: tables[1].indexes[1] is null, not text"),
            ("gen_db.jsonl", 1, "db_schema: tables[2] is a whole number, not an object"),
            ("gen_spec.jsonl", 1, "api_spec: api_groups is an object, not a list"),
        ]
        [schema] = [v for v in catalog.current("shop") if v.part is Part.schema]
        assert orjson.loads(catalog.content(schema.sha)) == {"tables": tables}

    def test_what_an_export_would_not_write_of_a_scenario_is_told_and_left_out(
        self, bring: Callable[..., ImportReport], catalog: Catalog
    ) -> None:
        ours = {"origin": "a" * 1000, "now": "noon", "title": 7, "domain": "re\ntail", "extra": [1], "x": 1}
        report = bring(
            scenario=[
                {"name": "shop", "description": "x", "awm_studio": ours},
                {"name": "clinic", "description": "x", "awm_studio": 3},
            ]
        )
        assert [fault.error for fault in report.malformed] == [
            *(f"awm_studio.{key} is nothing that an export writes" for key in ("origin", "now", "title", "extra", "x")),
            "awm_studio is a whole number, not an object",
        ]
        row = catalog.summary("shop")
        assert (row.title, row.origin, row.domain, row.now) == ("shop", "import", "re tail", DEFAULT_NOW)

    def test_lines_are_counted_as_an_editor_counts_them(
        self, bring: Callable[..., ImportReport], catalog: Catalog
    ) -> None:
        report = bring(
            tasks=b'\xef\xbb\xbf{"scenario": "a", "tasks": []}\r\n\r\n{"scenario": "b", \r\n{"scenario": "c", "tasks": []}'
        )
        assert [(fault.file, fault.line) for fault in report.malformed] == [("gen_tasks.jsonl", 3)]
        assert catalog.names() == ["a", "c"]

    def test_a_file_that_cannot_be_opened_is_told(
        self, bring: Callable[..., ImportReport], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened = Path.open

        def refuse(path: Path, *args: Any, **options: Any) -> Any:
            if path.name == "gen_db.jsonl" and args == ("rb",):
                raise PermissionError(13, "Permission denied", str(path))
            return opened(path, *args, **options)

        monkeypatch.setattr(Path, "open", refuse)
        report = bring(**WHOLE)
        assert report.malformed == [Malformed("gen_db.jsonl", 0, "cannot be read: Permission denied")]
        assert report.missing == [("my_shop_2", (Part.schema,))]


class TestNothingToImport:
    def test_not_there(self, catalog: Catalog, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="nowhere is not a folder: check the path"):
            import_awm(catalog, tmp_path / "nowhere")

    def test_not_a_folder(self, catalog: Catalog, tmp_path: Path) -> None:
        (tmp_path / "gen_tasks.jsonl").touch()
        with pytest.raises(UserError, match="is not a folder: give the folder it is in"):
            import_awm(catalog, tmp_path / "gen_tasks.jsonl")

    def test_empty(self, catalog: Catalog, folder: Path) -> None:
        with pytest.raises(UserError, match="outputs is empty"):
            import_awm(catalog, folder)

    def test_no_known_file(self, catalog: Catalog, folder: Path) -> None:
        (folder / "notes.txt").touch()
        with pytest.raises(UserError, match="none of the files of the AWM layout"):
            import_awm(catalog, folder)

    def test_a_pipe_or_a_folder_of_a_files_name_is_told_and_the_rest_is_kept(
        self, catalog: Catalog, folder: Path
    ) -> None:
        (folder / "gen_tasks.jsonl").write_text('{"scenario": "shop", "tasks": ["x"]}\n')
        os.mkfifo(folder / "gen_db.jsonl")
        (folder / "gen_envs.jsonl").mkdir()
        report = import_awm(catalog, folder)
        assert {(at.file, at.line, at.error[:13]) for at in report.malformed} == {
            ("gen_db.jsonl", 0, "is not a file"),
            ("gen_envs.jsonl", 0, "is not a file"),
        }
        assert "gen_db.jsonl" not in report.missing_files

    def test_the_files_are_one_folder_below(self, catalog: Catalog, folder: Path) -> None:
        (folder / "gen_tasks.jsonl").touch()
        with pytest.raises(UserError, match=f"Did you mean {folder}"):
            import_awm(catalog, folder.parent)

    def test_no_usable_line(self, bring: Callable[..., ImportReport]) -> None:
        with pytest.raises(UserError, match=r"gen_tasks\.jsonl:1: is not JSON"):
            bring(tasks=b"garbage\n")

    def test_no_line(self, bring: Callable[..., ImportReport]) -> None:
        with pytest.raises(UserError, match="files are empty"):
            bring(tasks=b"")


class TestProgress:
    def test_an_interrupted_import_keeps_what_was_read_and_goes_on_when_repeated(
        self, bring: Callable[..., ImportReport], catalog: Catalog, folder: Path
    ) -> None:
        def interrupt(file: str, done: int, total: int) -> None:
            if file == "gen_db.jsonl":
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            bring(progress=interrupt, **WHOLE)
        before = catalog.current("my_shop_2")
        assert [version.part for version in before] == [Part.scenario, Part.tasks, Part.schema]
        report = import_awm(catalog, folder)
        assert (report.changed, report.missing) == (5, [])
        assert catalog.current("my_shop_2")[:3] == before

    def test_it_grows_to_the_size_of_all_files(self, bring: Callable[..., ImportReport], folder: Path) -> None:
        seen: list[tuple[int, int]] = []
        bring(progress=lambda file, done, total: seen.append((done, total)), **WHOLE)
        total = sum(path.stat().st_size for path in folder.iterdir())
        assert seen[-1] == (total, total)
        assert seen == sorted(seen)


class TestTheHub:
    def test_without_the_package_it_says_how_to_get_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = builtins.__import__

        def without_hub(name: str, *rest: Any) -> Any:
            if name.partition(".")[0] == "huggingface_hub":
                raise ModuleNotFoundError(name)
            return real(name, *rest)

        monkeypatch.setattr(builtins, "__import__", without_hub)
        with pytest.raises(UserError, match=r"pip install 'awm-studio\[hf\]'"):
            download("Snowflake/AgentWorldModel-1K")


def test_the_five_real_environments(catalog: Catalog, awm_real: Path) -> None:
    report = import_awm(catalog, awm_real)
    assert (report.environments, report.tasks, report.verifiers) == (5, 50, {"code": 50, "sql": 0})
    assert (report.duplicates, report.malformed, report.missing) == ([], [], [])
    assert [(row.name, row.tables, row.rows, row.tools) for row in catalog.summaries()] == [
        ("doordash_drive_delivery_tracking", 18, 71, 21),
        ("etsy_digital_downloads", 21, 138, 18),
        ("gofundme", 12, 60, 11),
        ("samsara_fleet_asset_maintenance_management", 18, 120, 23),
        ("surveymonkey_apply", 27, 105, 26),
    ]
    assert catalog.environment("GoFundMe").title == "GoFundMe"
