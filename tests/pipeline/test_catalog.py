"""The catalog: versions, what is known about them, and what happens when the database is not what it should be."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from pipeline.catalog import Catalog
from pipeline.catalog_tables import SCHEMA_VERSION, metadata
from pipeline.errors import UserError
from pipeline.model import DEFAULT_NOW, Author, AuthorKind, Call, Cost, Mode, Part, Solution, Verifier
from pipeline.storage import MIGRATIONS

ME = Author(AuthorKind.person, "me")
CODE_VERIFIER = "def verify_task_completion(initial_db_path, final_db_path): ..."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog.db"


@pytest.fixture
def catalog(path: Path) -> Iterator[Catalog]:
    with Catalog.open(path) as opened:
        yield opened


class TestVersions:
    def test_a_new_content_is_a_new_version_and_the_same_one_is_not(self, catalog: Catalog) -> None:
        first = catalog.put("shop", Part.tasks, '["Buy it."]', author=ME)
        again = catalog.put("shop", Part.tasks, '["Buy it."]', author=ME)
        second = catalog.put("shop", Part.tasks, '["Buy two."]', author=ME)
        assert (first.number, again, second.number) == (1, first, 2)
        assert catalog.versions("shop", Part.tasks) == [first, second]
        assert catalog.current("shop") == [second]
        assert catalog.content(first.sha) == '["Buy it."]'

    def test_white_space_in_json_is_not_content(self, catalog: Catalog) -> None:
        first = catalog.put("shop", Part.spec, '{"api_groups": [ ]}', author=ME)
        assert catalog.put("shop", Part.spec, '{\n  "api_groups":[]}\n', author=ME) == first

    def test_another_extra_is_another_version(self, catalog: Catalog) -> None:
        plain = catalog.put("shop", Part.code, "app = 1", author=ME)
        noted = catalog.put("shop", Part.code, "app = 1", author=ME, extra={"raw_response": "I wrote it"})
        assert (plain.number, noted.number) == (1, 2)
        assert (catalog.extra(plain), catalog.extra(noted)) == ({}, {"raw_response": "I wrote it"})

    def test_going_back_to_an_earlier_content_is_a_version_unless_it_may_not_be_revived(self, catalog: Catalog) -> None:
        old = catalog.put("shop", Part.code, "old", author=ME)
        new = catalog.put("shop", Part.code, "new", author=ME)
        assert catalog.put("shop", Part.code, "old", author=ME, revive=False) == old
        assert catalog.current("shop") == [new]
        assert catalog.put("shop", Part.code, "old", author=ME).number == 3
        assert catalog.content(catalog.current("shop")[0].sha) == "old"

    def test_the_same_code_twice_is_stored_once(self, catalog: Catalog, path: Path) -> None:
        for name in ("shop", "clinic"):
            for task in range(10):
                catalog.put(name, Part.verifier, CODE_VERIFIER, slot=f"{task}/code", author=ME)
        assert sqlite3.connect(path).execute("SELECT count(*) FROM blobs").fetchone() == (1,)

    def test_a_version_knows_its_author_parents_and_cost(self, path: Path) -> None:
        with Catalog.open(path) as catalog:
            parent = catalog.put("shop", Part.tasks, "[]", author=ME)
            made = catalog.put(
                "shop",
                Part.schema,
                "{}",
                author=Author(AuthorKind.model, "a-model"),
                parents=[parent.id],
                cost=Cost(tokens_in=10, tokens_out=20, usd=0.5, seconds=1.5),
            )
        with Catalog.open(path) as catalog:
            assert catalog.versions("shop", "schema") == [made]
        assert made.author == Author(AuthorKind.model, "a-model")
        assert made.parents == (parent.id,)
        assert made.cost == Cost(tokens_in=10, tokens_out=20, usd=0.5, seconds=1.5)
        assert parent.cost is None

    def test_any_text_comes_back_as_it_was(self, catalog: Catalog) -> None:
        text = "x = 'é\0\r\n\ud800'"
        assert catalog.content(catalog.put("shop", Part.code, text, author=ME).sha) == text

    def test_a_bulk_is_kept_whole_or_not_at_all(self, catalog: Catalog) -> None:
        with catalog.bulk():
            catalog.put("shop", Part.code, "one", author=ME)
        with pytest.raises(ZeroDivisionError), catalog.bulk():
            catalog.put("shop", Part.code, "two", author=ME)
            catalog.put("clinic", Part.code, "two", author=ME)
            assert catalog.names() == ["clinic", "shop"]
            raise ZeroDivisionError
        assert catalog.names() == ["shop"]
        assert catalog.environment("shop").code == "one"

    @pytest.mark.parametrize("name", ["", "../../x", "Shop", "a__b", "_a", "a b", "ä", "x" * 201])
    def test_only_normalised_names_are_taken(self, catalog: Catalog, name: str) -> None:
        with pytest.raises(UserError, match="not a scenario name"):
            catalog.put(name, Part.tasks, "[]", author=ME)

    @pytest.mark.parametrize(
        ("part", "content", "said"),
        [
            (Part.tasks, "[", "tasks is not JSON"),
            (Part.tasks, "{}", "must be a list, not an object"),
            (Part.schema, "[]", "must be an object, not a list"),
            (Part.spec, "null", "must be an object, not null"),
            (Part.scenario, '{"description": "a shop"}', "None does not normalise to shop"),
            (Part.scenario, '{"name": "Clinic"}', "'Clinic' does not normalise to shop"),
        ],
    )
    def test_a_content_that_does_not_fit_its_part_is_refused(
        self, catalog: Catalog, part: Part, content: str, said: str
    ) -> None:
        with pytest.raises(UserError, match=said):
            catalog.put("shop", part, content, author=ME)
        assert catalog.names() == []


class TestEnvironments:
    def test_an_environment_is_the_view_of_its_current_parts(self, catalog: Catalog) -> None:
        catalog.put(
            "shop",
            "scenario",
            '{"name": "Shop!", "description": "Sells."}',
            author=ME,
            title="Shop!",
            origin="blueprint",
        )
        catalog.put(
            "shop", "tasks", '["Buy.", "Sell."]', author=ME, domain="retail", now=datetime(2026, 5, 1, tzinfo=UTC)
        )
        catalog.put(
            "shop", "schema", '{"tables": [{"name": "t", "ddl": "CREATE TABLE t(a)", "indexes": ["i"]}]}', author=ME
        )
        catalog.put("shop", "sample", '{"tables": [{"table_name": "t", "insert_statements": ["x", "y"]}]}', author=ME)
        endpoint = '{"operation_id": "get_t", "method": "get", "path": "/t", "required_tables": ["t"]}'
        catalog.put("shop", "spec", f'{{"api_groups": [{{"group_name": "T", "endpoints": [{endpoint}]}}]}}', author=ME)
        catalog.put("shop", "code", "app = 1", author=ME)
        catalog.put("shop", "verifier", CODE_VERIFIER, slot="1/code", author=ME)
        catalog.put("shop", "verifier", "sql", slot="0/sql", author=ME)
        catalog.put(
            "shop",
            "solution",
            '{"calls": [{"tool": "get_t", "arguments": {"a": 1}}], "answer": "7"}',
            slot="0",
            author=ME,
        )

        env = catalog.environment("shop")
        assert (env.title, env.description, env.origin, env.domain) == ("Shop!", "Sells.", "blueprint", "retail")
        assert env.now == datetime(2026, 5, 1, tzinfo=UTC)
        assert env.tasks == ("Buy.", "Sell.")
        assert [(t.name, t.ddl, t.indexes) for t in env.schema] == [("t", "CREATE TABLE t(a)", ("i",))]
        assert [(t.table, t.inserts) for t in env.sample] == [("t", ("x", "y"))]
        [operation] = env.operations
        assert (operation.operation_id, operation.method, operation.group, operation.tables) == (
            "get_t",
            "GET",
            "T",
            ("t",),
        )
        assert env.code == "app = 1"
        assert env.verifiers == (Verifier(0, Mode.sql, "sql"), Verifier(1, Mode.code, CODE_VERIFIER))
        assert env.solutions == (Solution(0, (Call("get_t", {"a": 1}),), "7"),)
        assert env.missing == ()

        [row] = catalog.summaries()
        assert (row.tables, row.rows, row.tools, row.tasks) == (1, 2, 1, 2)
        assert (row.code_verifiers, row.sql_verifiers, row.missing) == (1, 1, ())
        assert catalog.summary("shop") == row

    def test_what_is_not_there_is_unknown_and_named(self, catalog: Catalog) -> None:
        catalog.put("shop", Part.tasks, "[]", author=ME)
        row = catalog.summary("shop")
        assert (row.tables, row.rows, row.tools, row.check, row.audit, row.concept) == (None,) * 6
        assert (row.tasks, row.code_verifiers) == (0, 0)
        assert row.missing == catalog.environment("shop").missing == tuple(p for p in Part if p is not Part.solution)
        assert (row.title, row.origin, row.now) == ("shop", "person", DEFAULT_NOW)

    def test_counts_follow_edits(self, catalog: Catalog) -> None:
        catalog.put("shop", Part.tasks, '["a"]', author=ME)
        catalog.put("shop", Part.tasks, '["a", "b", "c"]', author=ME)
        for code in ("one", "two"):
            catalog.put("shop", Part.verifier, code, slot="0/code", author=ME)
        assert (catalog.summary("shop").tasks, catalog.summary("shop").code_verifiers) == (3, 1)
        catalog.put("shop", Part.tasks, "[]", author=ME)
        assert (catalog.summary("shop").tasks, Part.tasks in catalog.summary("shop").missing) == (0, True)

    def test_wrong_types_inside_a_part_are_left_out_of_the_view(self, catalog: Catalog) -> None:
        catalog.put(
            "shop", Part.schema, '{"tables": [1, {"name": "t"}, {"name": "u", "ddl": "x", "indexes": 3}]}', author=ME
        )
        catalog.put("shop", Part.tasks, '["a", {"task": "b"}, "c"]', author=ME)
        env = catalog.environment("shop")
        assert [table.name for table in env.schema] == ["u"]
        assert env.tasks == ("a", '{"task":"b"}', "c")

    def test_a_title_will_do_for_a_name(self, catalog: Catalog) -> None:
        catalog.put("doordash_drive_tracking", Part.tasks, "[]", author=ME, title="DoorDash Drive (Tracking)")
        assert catalog.environment("DoorDash Drive (Tracking)").name == "doordash_drive_tracking"
        assert catalog.resolve("DoorDash Drive (Tracking)") == "doordash_drive_tracking"

    def test_an_unknown_name_gets_close_ones(self, catalog: Catalog) -> None:
        with pytest.raises(UserError, match="workspace is empty"):
            catalog.environment("shop")
        catalog.put("flower_shop", Part.tasks, "[]", author=ME)
        with pytest.raises(UserError, match=r"no environment 'flowershop'\. Did you mean flower_shop"):
            catalog.environment("flowershop")
        with pytest.raises(UserError, match="awm-studio list"):
            catalog.current("zzzz")

    def test_environments_come_in_the_order_asked_for(self, catalog: Catalog) -> None:
        for name in ("c", "a", "b"):
            catalog.put(name, Part.code, name, author=ME)
        assert [env.code for env in catalog.environments()] == ["a", "b", "c"]
        assert [env.code for env in catalog.environments(["b", "a"])] == ["b", "a"]
        assert [env.code for env in catalog.environments(parts=[Part.tasks])] == [None] * 3

    def test_describing_sets_only_what_is_given(self, catalog: Catalog) -> None:
        catalog.put("shop", Part.tasks, "[]", author=ME, title="Shop")
        catalog.describe("shop", concept="retail", audit="trusted")
        catalog.describe("shop", audit="loose")
        row = catalog.summary("shop")
        assert (row.title, row.concept, row.audit) == ("Shop", "retail", "loose")
        with pytest.raises(UserError, match="no environment 'clinic'"):
            catalog.describe("clinic", title="Clinic")


class TestChecks:
    def test_a_check_is_kept_under_its_key(self, catalog: Catalog) -> None:
        catalog.put("shop", Part.code, "one", author=ME)
        assert catalog.check("shop") is None
        catalog.set_check("shop", "fail", '[{"code": "x"}]', "key-1")
        catalog.set_check("shop", "pass", "[]", "key-2")
        kept = catalog.check("shop", "key-2")
        assert kept and (kept.status, kept.findings_json, kept.key) == ("pass", "[]", "key-2")
        assert catalog.check("shop", "key-1") is None
        assert catalog.summary("shop").check == "pass"

    @pytest.mark.parametrize(
        "change",
        [
            lambda c: c.put("shop", Part.code, "two", author=ME),
            lambda c: c.put("shop", Part.code, "one", author=ME, now=datetime(2027, 1, 1, tzinfo=UTC)),
            lambda c: c.describe("shop", now=datetime(2027, 1, 1, tzinfo=UTC)),
        ],
    )
    def test_a_change_makes_the_check_stale(self, catalog: Catalog, change) -> None:
        catalog.put("shop", Part.code, "one", author=ME)
        catalog.set_check("shop", "pass", "[]", "key")
        change(catalog)
        assert catalog.summary("shop").check == "stale"

    def test_no_change_leaves_it(self, catalog: Catalog) -> None:
        catalog.put("shop", Part.code, "one", author=ME)
        catalog.set_check("shop", "warn", "[]", "key")
        catalog.put("shop", Part.code, "one", author=ME, now=DEFAULT_NOW, title="A shop")
        assert catalog.summary("shop").check == "warn"

    def test_a_solution_leaves_it_too(self, catalog: Catalog) -> None:
        catalog.put("shop", Part.code, "one", author=ME)
        catalog.set_check("shop", "warn", "[]", "key")
        catalog.put("shop", Part.solution, "{}", slot="0", author=ME)
        assert catalog.summary("shop").check == "warn"


class TestAudits:
    def test_an_audit_is_kept_under_its_key_with_the_verdict_beside_the_name(self, catalog: Catalog) -> None:
        catalog.put("shop", Part.code, "one", author=ME)
        assert catalog.audit("shop") is None
        catalog.set_audit("shop", "unproven", "{}", "key-1")
        catalog.set_audit("shop", "loose", '{"name": "shop"}', "key-2")
        kept = catalog.audit("shop", "key-2")
        assert kept and (kept.verdict, kept.document_json, kept.key) == ("loose", '{"name": "shop"}', "key-2")
        assert catalog.audit("shop", "key-1") is None
        assert catalog.summary("shop").audit == "loose"

    def test_an_environment_without_verifiers_has_an_audit_without_a_verdict(self, catalog: Catalog) -> None:
        catalog.put("shop", Part.code, "one", author=ME)
        catalog.set_audit("shop", None, "{}", "key")
        kept = catalog.audit("shop")
        assert kept and kept.verdict is None
        assert catalog.summary("shop").audit is None

    @pytest.mark.parametrize(
        "change",
        [
            lambda c: c.put("shop", Part.verifier, CODE_VERIFIER, slot="0/code", author=ME),
            lambda c: c.put("shop", Part.solution, "{}", slot="0", author=ME),
            lambda c: c.describe("shop", now=datetime(2027, 1, 1, tzinfo=UTC)),
        ],
    )
    def test_a_change_makes_the_audit_stale(self, catalog: Catalog, change) -> None:
        catalog.put("shop", Part.code, "one", author=ME)
        catalog.set_audit("shop", "trusted", "{}", "key")
        change(catalog)
        assert catalog.summary("shop").audit == "stale"


class TestRuns:
    def test_a_run_and_its_events(self, catalog: Catalog) -> None:
        run = catalog.add_run("synth", {"count": 3})
        other = catalog.add_run("audit", {})
        catalog.update_run(run, state="running", pid=42)
        catalog.update_run(run, state="done", result={"made": 3})
        first = catalog.add_event(run, "started", {"stage": "tasks"}, scenario="shop")
        last = catalog.add_event(other, "ended", None)
        newest, oldest = catalog.runs()
        assert (newest.id, newest.state, newest.result) == (other, "queued", None)
        assert (oldest.kind, oldest.state, oldest.pid, oldest.config, oldest.result) == (
            "synth", "done", 42, {"count": 3}, {"made": 3}
        )  # fmt: skip
        assert oldest.updated_at >= oldest.created_at
        assert [(e.run, e.kind, e.scenario, e.data) for e in catalog.events()] == [
            (run, "started", "shop", {"stage": "tasks"}),
            (other, "ended", None, None),
        ]
        assert [e.id for e in catalog.events(after=first)] == [last]
        assert [e.id for e in catalog.events(limit=1)] == [first]
        assert [e.id for e in catalog.events(run=other)] == [last]

    def test_a_run_that_is_not_there(self, catalog: Catalog) -> None:
        with pytest.raises(UserError, match="no run 7"):
            catalog.update_run(7, state="done")
        with pytest.raises(TypeError, match="colour"):
            catalog.update_run(catalog.add_run("synth", {}), colour="red")


class TestSchema:
    def test_migrations_make_the_tables_that_the_code_uses(self, catalog: Catalog, path: Path) -> None:
        with create_engine(f"sqlite:///{path}").connect() as connection:
            differences = compare_metadata(
                MigrationContext.configure(connection, opts={"compare_type": True}), metadata
            )
        assert differences == []

    def test_the_code_knows_the_newest_migration(self) -> None:
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        assert ScriptDirectory.from_config(config).get_current_head() == SCHEMA_VERSION

    def test_an_older_catalog_is_migrated_with_its_content(self, path: Path) -> None:
        from alembic import command

        with create_engine(f"sqlite:///{path}").begin() as connection:
            config = Config()
            config.set_main_option("script_location", str(MIGRATIONS))
            config.attributes["connection"] = connection
            command.upgrade(config, "0001")
            connection.exec_driver_sql(
                "INSERT INTO scenarios (name, title, origin, now, code_verifiers, sql_verifiers, missing) "
                "VALUES ('shop', 'Shop', 'import', '2026-01-01T12:00:00+00:00', 0, 0, '')"
            )
        with Catalog.open(path) as catalog:
            assert catalog.names() == ["shop"]
        assert sqlite3.connect(path).execute("SELECT version_num FROM alembic_version").fetchone() == (SCHEMA_VERSION,)

    def test_a_catalog_of_a_newer_version_is_left_alone(self, path: Path) -> None:
        Catalog.open(path).close()
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE alembic_version SET version_num = '9999'")
        with pytest.raises(UserError, match="made by a newer awm-studio"):
            Catalog.open(path)


class TestWhatIsNotACatalog:
    def test_some_other_database(self, path: Path) -> None:
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE recipes(id)")
        with pytest.raises(UserError, match="not a catalog of awm-studio"):
            Catalog.open(path)
        assert sqlite3.connect(path).execute("SELECT name FROM sqlite_master").fetchall() == [("recipes",)]

    def test_some_other_file(self, path: Path) -> None:
        path.write_text("Dear diary, " * 100)
        with pytest.raises(UserError, match="not an SQLite database"):
            Catalog.open(path)

    def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="cannot be opened"):
            Catalog.open(tmp_path)

    def test_a_file_cut_short(self, path: Path) -> None:
        Catalog.open(path).close()
        path.write_bytes(path.read_bytes()[:5000])
        with pytest.raises(UserError, match="is damaged"):
            Catalog.open(path)

    def test_a_content_with_flipped_bytes(self, catalog: Catalog, path: Path) -> None:
        catalog.put("shop", Part.code, "app = 1", author=ME)
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE blobs SET data = x'00ff00ff'")
        with pytest.raises(UserError, match="is damaged"):
            catalog.environment("shop")

    def test_one_that_may_not_be_written(self, path: Path) -> None:
        Catalog.open(path).close()
        with (
            Catalog.open(f"sqlite:///file:{path}?mode=ro&uri=true") as catalog,
            pytest.raises(UserError, match="cannot be written to"),
        ):
            catalog.put("shop", Part.code, "x", author=ME)

    def test_one_that_is_locked(self, path: Path) -> None:
        with Catalog.open(path, busy_timeout_s=0.05) as catalog:
            writer = sqlite3.connect(path, isolation_level=None)
            writer.execute("BEGIN IMMEDIATE")
            assert catalog.names() == []
            with pytest.raises(UserError, match="locked by another process"):
                catalog.put("shop", Part.code, "x", author=ME)
            writer.rollback()
            catalog.put("shop", Part.code, "x", author=ME)

    @pytest.mark.parametrize("url", ["oracle9://me:hunter2@host/db", "postgresql+nothere://me:hunter2@host/db", "://"])
    def test_a_url_that_leads_nowhere_keeps_its_password(self, url: str) -> None:
        with pytest.raises(UserError, match="database_url") as raised:
            Catalog.open(url)
        assert "hunter2" not in str(raised.value)

    def test_a_path_may_have_any_characters(self, tmp_path: Path) -> None:
        odd = tmp_path / "a?b%20 #ü.db"
        Catalog.open(odd).close()
        assert odd.is_file()


WRITER = """
import sys
from pipeline.catalog import Catalog
from pipeline.model import Author, AuthorKind
with Catalog.open(sys.argv[1]) as catalog:
    for number in range(20):
        catalog.put("shop", "code", f"{sys.argv[2]} {number}", author=Author(AuthorKind.person))
"""


def test_processes_may_make_and_write_one_catalog_at_once(path: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(n)]) for n in range(3)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0, 0]
    with Catalog.open(path) as catalog:
        made = catalog.versions("shop", "code")
        assert [version.number for version in made] == list(range(1, 61))
        contents = [catalog.content(version.sha) for version in made]
        for writer in "012":
            assert [c for c in contents if c.startswith(writer)] == [f"{writer} {number}" for number in range(20)]
