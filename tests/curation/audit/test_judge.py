"""Verifiers in sql mode whose evidence a model judges: audited like others, beside code mode and what is right."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from curation.audit.judge import ModelJudge
from curation.audit.records import EnvironmentAudit
from curation.audit.summary import disagreement
from curation.audit.workspace import audit_workspace
from pipeline.catalog import Catalog
from pipeline.llm.profiles import Profile
from pipeline.runtime.host import Host
from tests.curation.audit.desk import SOLUTIONS, sql_verifier, verifier
from tests.curation.audit.workspaces import put_desk
from tests.llm_server import Answer, Say, Server, Status

Model = Callable[[dict[str, Any]], Answer]


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """A desk with a verifier in code mode and one whose evidence does not say whether it holds."""
    sound = sql_verifier(0)
    evidence = replace(sound, code=sound.code.replace('{"holds": good}', '{"as_asked": good}'))
    with Catalog.open(tmp_path / "catalog.db") as opened:
        put_desk(opened, "desk", [verifier(0), evidence], SOLUTIONS[:1])
        yield opened


def shown(body: dict[str, Any]) -> dict[str, Any]:
    """What the model is asked to judge."""
    return json.loads(body["messages"][1]["content"])


def says(complete: bool) -> Say:
    return Say(json.dumps({"reason": "The evidence says so.", "verdict": "complete" if complete else "others"}))


def goes_by_evidence(body: dict[str, Any]) -> Answer:
    return says(json.loads(shown(body)["evidence"])["as_asked"])


@contextmanager
def judge_by(model: Model, folder: Path) -> Generator[tuple[ModelJudge, Server]]:
    with Server(model) as server:
        profile = Profile(model="m", base_url=server.url, api_key_env="", retries=0)
        with ModelJudge(folder / "replies.db", profile) as judge:
            yield judge, server


def audit(catalog: Catalog, host: Host, judge: ModelJudge | None) -> EnvironmentAudit:
    (result,) = audit_workspace(catalog, ["desk"], host, workers=1, judge=judge)
    return result


def verdicts(result: EnvironmentAudit) -> dict[str, str]:
    return {one.mode.value: one.verdict for one in result.verifiers}


def test_without_a_judge_evidence_proves_nothing(catalog: Catalog, host: Host) -> None:
    result = audit(catalog, host, None)
    assert verdicts(result) == {"code": "trusted", "sql": "unproven"}
    assert result.disagreements == ()


def test_a_judge_that_goes_by_sound_evidence_makes_a_verifier_trusted(
    catalog: Catalog, host: Host, tmp_path: Path
) -> None:
    with judge_by(goes_by_evidence, tmp_path) as (judge, server):
        result = audit(catalog, host, judge)
        assert verdicts(result) == {"code": "trusted", "sql": "trusted"}
        assert {(row["right"], row["code"], row["sql"]) for row in disagreement([result])} == {
            ("complete", "complete", "complete"),
            ("others", "others", "others"),
        }
        asked = len(server.requests)
        kinds = {kind for one in result.verifiers if one.mode.value == "sql" for kind in one.tried}
        assert 0 < asked <= len(kinds)  # at most one state of each kind; equal ones are asked about once
        first = shown(server.requests[0])
        assert set(first) == {"task", "answer", "evidence", "changes"}
        assert audit(catalog, host, judge) == result
        assert len(server.requests) == asked  # it is kept


def test_a_judge_that_accepts_everything_is_loose_where_code_mode_is_not(
    catalog: Catalog, host: Host, tmp_path: Path
) -> None:
    with judge_by(lambda body: says(True), tmp_path) as (judge, _):
        result = audit(catalog, host, judge)
    assert verdicts(result) == {"code": "trusted", "sql": "loose"}
    said = {(row["right"], row["code"], row["sql"]) for row in disagreement([result])}
    assert said == {("complete", "complete", "complete"), ("others", "others", "complete")}


@pytest.mark.parametrize("text", ["I think so.", '{"verdict": 3}', "[]"])
def test_words_that_are_no_judgement_leave_the_verifier_unproven(
    catalog: Catalog, host: Host, tmp_path: Path, text: str
) -> None:
    with judge_by(lambda body: Say(text), tmp_path) as (judge, _):
        result = audit(catalog, host, judge)
        assert judge.fault is None
    assert verdicts(result)["sql"] == "unproven"


def test_a_judge_that_is_down_is_asked_once_and_its_audit_is_not_kept(
    catalog: Catalog, host: Host, tmp_path: Path
) -> None:
    with judge_by(lambda body: Status(500, "out of order"), tmp_path) as (judge, server):
        result = audit(catalog, host, judge)
        assert judge.fault is not None and "500" in judge.fault
        assert len(server.requests) == 1
    assert verdicts(result) == {"code": "trusted", "sql": "unproven"}
    assert catalog.audit("desk") is None
