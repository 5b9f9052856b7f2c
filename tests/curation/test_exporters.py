"""Giving environments away: what is written, that it comes back the same, and that it is whole or not there."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curation.exporters import WrittenFile, export_awm
from curation.importers import import_awm
from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.model import Author, AuthorKind, Part, normalise

ME = Author(AuthorKind.person, "me")
MODEL = Author(AuthorKind.model, "a-model")


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog.open(tmp_path / "catalog.db") as opened:
        yield opened


def rows(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def everything(catalog: Catalog) -> dict[str, Any]:
    """What a catalog holds of every environment: the columns that describe it, its contents, and their extras."""
    held = {}
    for summary in catalog.summaries():
        parts = {(v.part, v.slot): (catalog.content(v.sha), catalog.extra(v)) for v in catalog.current(summary.name)}
        held[summary.name] = (summary.title, summary.origin, summary.domain, summary.now, summary.missing, parts)
    return held


class TestFiles:
    def test_rows_have_the_keys_that_upstream_reads(self, catalog: Catalog, tmp_path: Path) -> None:
        catalog.put("shop", "scenario", '{"name": "Shop!", "description": "Sells."}', author=MODEL)
        catalog.put("shop", "tasks", '["Buy.", "Sell."]', author=MODEL)
        catalog.put("shop", "schema", '{"tables": []}', author=MODEL)
        catalog.put("shop", "sample", '{"tables": []}', author=MODEL)
        catalog.put("shop", "spec", '{"api_groups": []}', author=MODEL)
        catalog.put("shop", "code", "app = 1", author=MODEL)
        catalog.put("shop", "verifier", "def verify_task_completion(a): ...", slot="1/code", author=MODEL)
        catalog.put("shop", "verifier", "def verify_task(a): ...", slot="0/sql", author=MODEL)
        catalog.put("shop", "solution", '{"calls": [], "answer": null}', slot="1", author=MODEL)
        catalog.describe("shop", title="The Shop", domain="retail", now=datetime(2026, 5, 1, tzinfo=UTC))
        folder = tmp_path / "out"
        written = export_awm(catalog, folder)
        assert {name: rows(folder / name) for name in written} == {
            "gen_scenario.jsonl": [
                {
                    "name": "Shop!",
                    "description": "Sells.",
                    "awm_studio": {
                        "title": "The Shop",
                        "origin": "model",
                        "domain": "retail",
                        "now": "2026-05-01T00:00:00+00:00",
                    },
                }
            ],
            "gen_tasks.jsonl": [{"scenario": "shop", "tasks": ["Buy.", "Sell."]}],
            "gen_db.jsonl": [
                {"scenario": "shop", "db_path": "./outputs/databases/shop.db", "db_schema": {"tables": []}}
            ],
            "gen_sample.jsonl": [{"scenario": "shop", "sample_data": {"tables": []}}],
            "gen_spec.jsonl": [{"scenario": "shop", "api_spec": {"api_groups": []}}],
            "gen_envs.jsonl": [{"scenario": "shop", "db_path": "./outputs/databases/shop.db", "full_code": "app = 1"}],
            "gen_verifier.pure_code.jsonl": [
                {
                    "scenario": "shop",
                    "task_idx": 1,
                    "task": "Sell.",
                    "verification": {"code": "def verify_task_completion(a): ..."},
                }
            ],
            "gen_verifier.jsonl": [
                {
                    "scenario": "shop",
                    "task_idx": 0,
                    "task": "Buy.",
                    "verification": {"code": "def verify_task(a): ..."},
                }
            ],
            "gen_solution.jsonl": [{"scenario": "shop", "task_idx": 1, "solution": {"calls": [], "answer": None}}],
        }
        assert sorted(path.name for path in folder.iterdir()) == sorted(written)

    def test_each_file_is_told_with_its_rows_and_digest(self, catalog: Catalog, tmp_path: Path) -> None:
        catalog.put("shop", Part.tasks, "[]", author=ME)
        catalog.put("clinic", Part.tasks, "[]", author=ME)
        written = export_awm(catalog, tmp_path / "out")
        assert list(written) == ["gen_scenario.jsonl", "gen_tasks.jsonl"]
        data = (tmp_path / "out" / "gen_tasks.jsonl").read_bytes()
        assert written["gen_tasks.jsonl"] == WrittenFile(2, hashlib.sha256(data).hexdigest())

    def test_the_same_catalog_gives_the_same_bytes(self, catalog: Catalog, tmp_path: Path) -> None:
        for name in ("b", "a"):
            catalog.put(name, Part.tasks, "[]", author=ME)
        assert export_awm(catalog, tmp_path / "one") == export_awm(catalog, tmp_path / "two")

    def test_only_those_named_once_each(self, catalog: Catalog, tmp_path: Path) -> None:
        for name in ("a_b", "b", "c"):
            catalog.put(name, Part.tasks, "[]", author=ME)
        export_awm(catalog, tmp_path / "out", ["c", "A b", "a_b"])
        assert [row["scenario"] for row in rows(tmp_path / "out" / "gen_tasks.jsonl")] == ["a_b", "c"]

    def test_nothing_of_this_machine_is_written(self, catalog: Catalog, tmp_path: Path) -> None:
        source = tmp_path / "secret-project"
        source.mkdir()
        row = {"scenario": "shop", "full_code": "app = 1", "db_path": str(tmp_path / "shop.db")}
        (source / "gen_envs.jsonl").write_bytes(orjson.dumps(row))
        import_awm(catalog, source)
        export_awm(catalog, tmp_path / "out")
        text = b"".join(path.read_bytes() for path in (tmp_path / "out").iterdir()).decode()
        assert str(tmp_path) not in text
        assert "secret-project" not in text


class TestWholeOrNotAtAll:
    @pytest.fixture(autouse=True)
    def one_environment(self, catalog: Catalog) -> None:
        catalog.put("shop", Part.code, "app = 1", author=ME)

    def test_a_folder_with_something_in_it_is_refused(self, catalog: Catalog, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "thesis.tex").write_text("x")
        with pytest.raises(UserError, match="not an empty folder"):
            export_awm(catalog, tmp_path / "out")
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.tex"]

    def test_a_file_is_refused(self, catalog: Catalog, tmp_path: Path) -> None:
        (tmp_path / "out").write_text("x")
        with pytest.raises(UserError, match="not an empty folder"):
            export_awm(catalog, tmp_path / "out")

    def test_an_empty_folder_will_do_and_folders_above_are_made(self, catalog: Catalog, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        export_awm(catalog, tmp_path / "out")
        export_awm(catalog, tmp_path / "deep" / "er" / "out")
        assert (tmp_path / "out" / "gen_envs.jsonl").is_file()
        assert (tmp_path / "deep" / "er" / "out" / "gen_envs.jsonl").is_file()

    def test_what_fails_half_way_leaves_nothing(
        self, catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(_: Catalog, sha: str) -> str:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Catalog, "content", full)
        before = set(tmp_path.iterdir())
        with pytest.raises(UserError, match="out cannot be written: No space left on device"):
            export_awm(catalog, tmp_path / "out")
        assert set(tmp_path.iterdir()) == before

    def test_an_unknown_environment_is_told_before_anything_is_written(self, catalog: Catalog, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="no environment 'shoop'"):
            export_awm(catalog, tmp_path / "out", ["shoop"])
        assert not (tmp_path / "out").exists()


def test_an_empty_workspace_has_nothing_to_export(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="workspace is empty"):
        export_awm(catalog, tmp_path / "out")


texts = st.text(max_size=12) | st.sampled_from(
    ["\0", "\N{LINE SEPARATOR}", "🙂", "\r\n", "'; DROP TABLE x;--", "\ufeff"]
)
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, values, max_size=3)
names = st.builds(
    "".join, st.tuples(texts, st.sampled_from(["shop", "A-B", "a b", "My Shop (2)", "../../x", "X\tY"]), texts)
).filter(lambda name: 0 < len(normalise(name)) <= 200)
codes = texts | st.sampled_from(["def verify_task(a): ...", "def verify_task_completion(a): ...", "app = FastAPI()"])
beside = st.dictionaries(texts | st.sampled_from(["db_path", "task", "name", "raw_response"]), values, max_size=3)


def row_of(
    key: str, content: st.SearchStrategy[Any], name_key: str = "scenario", **more: st.SearchStrategy[Any]
) -> Any:
    """Rows as a source might have them: what upstream writes, and any other keys."""
    own = st.fixed_dictionaries({name_key: names, key: content} | more)
    return st.lists(st.builds(lambda extra, row: extra | row, beside, own), max_size=3)


verifications = st.builds(lambda extra, code: extra | {"code": code}, objects, codes)
folders = st.fixed_dictionaries(
    {},
    optional={
        "gen_scenario": row_of("description", values, "name"),
        "gen_tasks": row_of("tasks", st.lists(texts | values, max_size=3)),
        "gen_db": row_of("db_schema", objects | st.just({"tables": [{"name": "t", "ddl": "x"}]})),
        "gen_sample": row_of("sample_data", objects),
        "gen_spec": row_of("api_spec", objects),
        "gen_envs": row_of("full_code", codes),
        "gen_verifier": row_of("verification", verifications, task_idx=st.integers(0, 3)),
        "gen_verifier.pure_code": row_of("verification", verifications, task_idx=st.integers(0, 3)),
        "gen_solution": row_of("solution", objects, task_idx=st.integers(0, 3)),
    },
)

many = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


@cache
def empty_catalog() -> bytes:
    with tempfile.TemporaryDirectory() as temporary:
        Catalog.open(Path(temporary, "catalog.db")).close()
        return Path(temporary, "catalog.db").read_bytes()


def fresh(path: Path) -> Catalog:
    """A new catalog, without the time that migrations take."""
    path.write_bytes(empty_catalog())
    return Catalog.open(path)


def exported_and_imported(catalog: Catalog, folder: Path) -> dict[str, Any]:
    export_awm(catalog, folder / "out")
    with fresh(folder / "again.db") as again:
        report = import_awm(again, folder / "out")
        assert report.duplicates == []
        return everything(again)


@many
@given(folders)
def test_what_was_imported_comes_back_the_same(files: dict[str, list[Any]]) -> None:
    with tempfile.TemporaryDirectory() as temporary, fresh(Path(temporary, "first.db")) as catalog:
        source = Path(temporary, "source")
        source.mkdir()
        for name, lines in files.items():
            (source / f"{name}.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)))
        if not any(files.values()):
            return
        import_awm(catalog, source)
        held = everything(catalog)
        assert held
        assert exported_and_imported(catalog, Path(temporary)) == held


made = st.fixed_dictionaries(
    {},
    optional={
        (Part.scenario, ""): st.builds(lambda more: more | {"name": "THE shop"}, objects),
        (Part.tasks, ""): st.lists(texts, max_size=3),
        (Part.schema, ""): objects,
        (Part.sample, ""): objects,
        (Part.spec, ""): objects,
        (Part.code, ""): codes,
        (Part.verifier, "0/code"): st.just("def verify_task_completion(a): ..."),
        (Part.verifier, "0/sql"): st.just("def verify_task(a): ..."),
        (Part.solution, "2"): objects,
    },
).filter(bool)
moments = st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.sampled_from([UTC]))


@many
@given(
    made,
    st.dictionaries(st.sampled_from(["prompt", "note", "zeal"]), values, max_size=2),
    st.sampled_from(["THE shop", "the_shop", "Der Laden", ""]),
    st.none() | st.text("abc", min_size=1),
    st.none() | moments,
)
def test_what_was_made_here_comes_back_the_same(
    parts: dict[tuple[Part, str], Any], extra: dict[str, Any], title: str, domain: str | None, now: datetime | None
) -> None:
    with tempfile.TemporaryDirectory() as temporary, fresh(Path(temporary, "first.db")) as catalog:
        for (part, slot), value in parts.items():
            content = value if part in (Part.code, Part.verifier) else orjson.dumps(value).decode()
            catalog.put(
                "the_shop", part, content, slot=slot, author=MODEL, title=title, domain=domain, now=now, extra=extra
            )
        assert exported_and_imported(catalog, Path(temporary)) == everything(catalog)


def test_the_five_real_environments_come_back_the_same(catalog: Catalog, awm_real: Path, tmp_path: Path) -> None:
    import_awm(catalog, awm_real)
    assert exported_and_imported(catalog, tmp_path) == everything(catalog)


def test_a_pinned_time_of_another_zone_comes_back_as_the_same_moment(catalog: Catalog, tmp_path: Path) -> None:
    moment = datetime.fromisoformat("2026-03-01T09:00:00+05:30")
    catalog.put("shop", Part.code, "app = 1", author=ME, now=moment)
    [(_, _, _, now, _, _)] = exported_and_imported(catalog, tmp_path).values()
    assert (now, now.utcoffset()) == (moment, timedelta(hours=5, minutes=30))
