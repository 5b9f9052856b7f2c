"""Rules about a built database: auth columns, references, losses, what tasks name and what they ask to be made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.model import DEFAULT_NOW, Environment, Part, TableRows, TableSchema, normalise
from pipeline.rules.interface import unknown_columns
from pipeline.rules.rows import is_about, rows_findings
from pipeline.rules.schema import columns_of, schema_findings
from pipeline.runtime.build import build
from pipeline.stages.step import with_part


def world(*ddl: str, rows: tuple[str, ...] = (), tasks: tuple[str, ...] = ()) -> Environment:
    schema = tuple(TableSchema(text.split()[2].partition("(")[0], text) for text in ddl)
    return Environment("w", schema=schema, sample=(TableRows("t", rows),), tasks=tasks)


def found(environment: Environment) -> list[tuple[str, str]]:
    built = build(environment.schema, environment.sample, now=DEFAULT_NOW)
    findings = [*schema_findings(built.snapshot), *rows_findings(environment, built)]
    return [(finding.code, finding.where) for finding in findings]


@pytest.mark.parametrize(
    "column", ["password", "password_hash", "pwd_salt", "salt", "auth_token", "otp_code", "api_key"]
)
def test_columns_for_signing_in_are_found(column: str):
    environment = world(
        f"CREATE TABLE users (id INTEGER PRIMARY KEY, {column} TEXT)", rows=("INSERT INTO users(id) VALUES (1)",)
    )
    assert found(environment) == [("auth_column", "schema: users")]


@pytest.mark.parametrize("column", ["secretary", "passport_number", "saltiness", "token_count", "key_result"])
def test_columns_that_only_sound_like_it_are_not(column: str):
    environment = world(
        f"CREATE TABLE users (id INTEGER PRIMARY KEY, {column} TEXT)", rows=("INSERT INTO users(id) VALUES (1)",)
    )
    assert found(environment) == []


def test_references_must_lead_somewhere():
    environment = world(
        "CREATE TABLE a (id INTEGER PRIMARY KEY)",
        "CREATE TABLE b (id INTEGER PRIMARY KEY, a INTEGER REFERENCES a(nr), c INTEGER REFERENCES c(id))",
        rows=("INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (1, NULL, NULL)"),
    )
    assert found(environment)[:2] == [("foreign_key_nowhere", "schema: b.c"), ("foreign_key_nowhere", "schema: b.a")]


ZONES = "CREATE TABLE zones (id INTEGER PRIMARY KEY, name TEXT UNIQUE)"


def test_a_goal_that_the_rows_already_reach_is_shown_with_its_row():
    environment = world(
        ZONES, rows=("INSERT INTO zones VALUES (1, 'North Yard')",), tasks=("Create a zone named 'North Yard'.",)
    )
    built = build(environment.schema, environment.sample, now=DEFAULT_NOW)
    (finding,) = rows_findings(environment, built)
    assert (finding.code, finding.tasks) == ("goal_in_seed", (0,))
    assert "'id': 1" in finding.evidence


def test_a_name_in_a_table_of_other_things_is_no_goal():
    environment = world(ZONES, rows=("INSERT INTO zones VALUES (1, 'Blue')",), tasks=("Create a tag named 'Blue'.",))
    assert found(environment) == []


def test_an_entity_that_a_task_needs_and_no_row_has_is_found():
    task = "Move crate 'C-17' from zone 'North Yard' to zone 'South Yard'."
    environment = world(ZONES, rows=("INSERT INTO zones VALUES (1, ' north yard')",), tasks=(task,))
    built = build(environment.schema, environment.sample, now=DEFAULT_NOW)
    (finding,) = rows_findings(environment, built)
    assert finding.code == "entity_absent"
    assert "'C-17'" in finding.message
    assert "North" not in finding.message


@pytest.mark.parametrize(("lost", "codes"), [(1, []), (2, ["rows_lost"])])
def test_more_than_a_tenth_of_the_rows_is_too_much_to_lose(lost: int, codes: list[str]):
    good = tuple(f"INSERT INTO zones VALUES ({n}, 'Zone {n}')" for n in range(10))
    bad = tuple("INSERT INTO zones VALUES (1, 'again')" for _ in range(lost))
    assert [code for code, _ in found(world(ZONES, rows=good + bad))] == codes


def test_the_signed_in_user_must_be_there():
    environment = world("CREATE TABLE users (id INTEGER PRIMARY KEY)", rows=("INSERT INTO users VALUES (7)",))
    assert found(environment) == [("user_missing", "sample: users")]


@pytest.mark.parametrize(
    ("table", "thing", "same"),
    [
        ("zones", "a new zone", True),
        ("donation_intents", "a one-time donation intent", True),
        ("product_categories", "a category", True),
        ("zones", "a zone manager", False),
        ("users", "", False),
    ],
)
def test_a_table_is_about_a_thing_by_its_last_word(table: str, thing: str, same: bool):
    assert is_about(table, thing) is same


def test_operations_may_only_name_columns_that_exist():
    environment = with_part(
        world(ZONES),
        Part.spec,
        json.dumps({"api_groups": [{"group_name": "g", "endpoints": [
            {"path": "/z", "method": "GET", "operation_id": "list_zones", "required_tables": ["zones"],
             "required_fields": {"zones": ["id", "Name", "colour"]}}]}]}),
    )  # fmt: skip
    built = build(environment.schema, (), now=DEFAULT_NOW)
    (finding,) = unknown_columns(environment.operations, columns_of(built.snapshot))
    assert finding.message == "list_zones needs zones.colour, which the schema does not declare"


def test_real_environments_show_their_known_faults(awm_real: Path):
    parts = {
        Part.tasks: ("gen_tasks.jsonl", "tasks"),
        Part.schema: ("gen_db.jsonl", "db_schema"),
        Part.sample: ("gen_sample.jsonl", "sample_data"),
    }
    environments: dict[str, Environment] = {}
    for part, (file, key) in parts.items():
        for line in (awm_real / file).read_text().splitlines():
            row = json.loads(line)
            name = normalise(row["scenario"])
            environments[name] = with_part(environments.get(name, Environment(name)), part, json.dumps(row[key]))
    goals = {
        name: [
            f.tasks[0] for f in rows_findings(e, build(e.schema, e.sample, now=DEFAULT_NOW)) if f.code == "goal_in_seed"
        ]
        for name, e in environments.items()
    }
    assert goals == {
        "surveymonkey_apply": [],
        "etsy_digital_downloads": [],
        "gofundme": [0],
        "doordash_drive_delivery_tracking": [],
        "samsara_fleet_asset_maintenance_management": [2, 6, 7],
    }
