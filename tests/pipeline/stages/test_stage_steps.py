"""A step: read the reply, run what it says, send back what is wrong with the facts, keep the best where allowed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from pipeline.findings import Finding
from pipeline.llm.faults import FaultKind, ModelFault
from pipeline.llm.request import Reply, Request
from pipeline.llm.text import Unreadable
from pipeline.model import Environment, Mode, Part, Verifier
from pipeline.runtime.host import Host
from pipeline.stages import database, interface, tasks, verification
from pipeline.stages.making import Outcome, make
from pipeline.stages.step import REJECTED, Attempt, Step, Weight, open_faults, with_part
from tests import scripted_model


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with Host() as opened:
        yield opened


@pytest.fixture(scope="module")
def small() -> Environment:
    """The scripted model's environment, complete."""
    environment = Environment("works", title="Works", description="A place with items.")
    for part, value in (
        (Part.tasks, scripted_model.TASKS),
        (Part.schema, scripted_model.SCHEMA),
        (Part.sample, scripted_model.SAMPLE),
        (Part.spec, scripted_model.SPEC),
    ):
        environment = with_part(environment, part, json.dumps(value))
    return replace(environment, code=scripted_model.CODE)


def codes(findings: Sequence[Finding]) -> list[str]:
    return [finding.code for finding in findings]


# each stage's own check


def test_right_artifacts_have_nothing_open(small: Environment, host: Host):
    for (step,), text in (
        (tasks.steps(small), json.dumps({"tasks": scripted_model.TASKS})),
        (database.schema_steps(small), json.dumps(scripted_model.SCHEMA)),
        (database.sample_steps(small), json.dumps(scripted_model.SAMPLE)),
        (interface.spec_steps(small), json.dumps(scripted_model.SPEC)),
        (interface.code_steps(small), f"```python\n{scripted_model.CODE}```"),
    ):
        content = step.read(text)
        findings = step.check(content, host)
        assert open_faults(step, Attempt(1, content, tuple(findings)), ()) == [], step.name
    for step in verification.steps(small):
        task, _, mode = step.slot.partition("/")
        content = step.read(f"```python\n{scripted_model.verifier(small.tasks[int(task)], mode)}```")
        assert step.check(content, host) == [], step.name


def test_a_lost_table_is_refused(small: Environment, host: Host):
    broken = json.loads(json.dumps(scripted_model.SCHEMA))
    broken["tables"][1]["ddl"] = "CREATE TABLE items (id INTEGER PRIMARY KEY, state TEXT DEFAULT 'x';"
    (step,) = database.schema_steps(small)
    findings = step.check(step.read(json.dumps(broken)), host)
    assert {step.weigh(f) for f in findings if f.code == "table_missing"} == {Weight.refuse}


@pytest.mark.parametrize(
    ("statement", "weight"),
    [
        ("INSERT INTO items VALUES (20, 1, 'Item 1's twin: Item 1', 'open', 1);", Weight.advise),
        ("INSERT INTO items VALUES (1, 1, 'Item 2', 'open', 1);", Weight.refuse),  # a task names it
    ],
)
def test_a_lost_row_is_refused_only_if_a_task_names_it(small: Environment, host: Host, statement: str, weight: Weight):
    sample = json.loads(json.dumps(scripted_model.SAMPLE))
    sample["tables"][1]["insert_statements"] += [
        *(f"INSERT INTO items VALUES ({n}, 2, 'More {n}', 'open', 1);" for n in range(30, 50)),
        statement,
    ]
    (step,) = database.sample_steps(small)
    (lost,) = [f for f in step.check(step.read(json.dumps(sample)), host) if f.code == "insert_failed"]
    assert step.weigh(lost) is weight


def test_code_that_does_not_load_is_refused_with_its_line(small: Environment, host: Host):
    (step,) = interface.code_steps(small)
    code = scripted_model.CODE.replace("current_user_id = 1", "current_user_id = one")
    (finding,) = step.check(code, host)
    assert step.weigh(finding) is Weight.refuse
    assert "one" in finding.message + finding.evidence


def test_a_tool_that_fails_is_corrected_and_may_stay(small: Environment, host: Host):
    (step,) = interface.code_steps(small)
    code = scripted_model.CODE.replace("return shown(mine(session, id))", "return {'id': 'no number'}")
    (finding,) = step.check(code, host)
    assert (finding.code, finding.where) == ("response_invalid", "code: get_item")
    assert step.weigh(finding) is Weight.correct


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("    return {'result': 'complete'}\n", "accepts_untouched"),
        ("    return {'result': 'complete' if final_answer == 'Done.' else 'others'}\n", "accepts_untouched"),
        ("    return 'complete'\n", "verifier_fails"),
        ("    import sqlite3\n    sqlite3.connect(final_db_path).execute('DELETE FROM items')\n"
         "    return {'result': 'others'}\n", "verifier_fails"),
        ("    import sqlite3\n    sqlite3.connect(final_db_path).execute('SELECT * FROM no_such')\n"
         "    return {'result': 'others'}\n", "verifier_fails"),
    ],
)  # fmt: skip
def test_a_verifier_that_judges_badly_is_refused(small: Environment, host: Host, body: str, code: str):
    source = f"def verify_task_completion(initial_db_path, final_db_path, final_answer=None):\n{body}"
    findings = verification.check(small, Verifier(0, Mode.code, source), host, host.build(small).snapshot)
    assert codes(findings) == [code]


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (tasks.read, '{"tasks": "one"}'),
        (tasks.read, "Sure, here are ten tasks!"),
        (tasks.read, '{"tasks": ["half a character: \\ud83d"]}'),
        (interface.read_code, "I'm sorry, I cannot write that."),
        (lambda text: verification.read(text, Mode.code), "```python\ndef verify_task(a, b): ...\n```"),
        (lambda text: verification.read(text, Mode.sql), "def verify_task(a, b:\n    return {}"),
    ],
)
def test_a_reply_of_another_shape_is_unreadable(read, text: str):
    with pytest.raises(Unreadable):
        read(text)


def test_a_spec_without_paths_names_the_place(small: Environment):
    (step,) = interface.spec_steps(small)
    broken = json.loads(json.dumps(scripted_model.SPEC))
    del broken["api_groups"][0]["endpoints"][2]["path"]
    with pytest.raises(Unreadable, match=r"endpoints\[2\]"):
        step.read(json.dumps(broken))


# asking until it is right


def letters(weigh: dict[str, Weight]) -> Step:
    """A step whose content is a word and whose faults are its capital letters, weighed as given."""

    def read(text: str) -> str:
        if not text.isalpha():
            raise Unreadable("Reply with letters.")
        return text

    return Step(
        stage="tasks",
        part=Part.tasks,
        what="word",
        prompt=(),
        read=read,
        check=lambda content, _: [Finding(c, "warn", "word", f"{c} is a capital") for c in content if c.isupper()],
        weigh=lambda finding: weigh.get(finding.code, Weight.refuse),
    )


class Asking:
    def __init__(self, *replies: str | ModelFault) -> None:
        self.replies = list(replies)
        self.requests: list[Request] = []

    async def __call__(self, request: Request) -> Reply:
        self.requests.append(request)
        said = self.replies.pop(0)
        if isinstance(said, ModelFault):
            raise said
        return Reply(said, keys=(f"key {len(self.requests)}",))


async def making(step: Step, asking: Asking, **options) -> Outcome:
    async def check(step: Step, content: str) -> Sequence[Finding]:
        return step.check(content, None)  # type: ignore[arg-type]

    return await make(step, asking, check, tell=lambda attempt, right: None, **options)


async def test_right_at_once():
    outcome = await making(letters({}), asking := Asking("right"))
    assert outcome.right and outcome.attempt is not None
    assert outcome.attempt.content == "right"
    assert len(asking.requests) == 1


async def test_right_after_a_correction_that_tells_the_facts_and_shows_the_attempt():
    outcome = await making(letters({}), asking := Asking("wrOng", "12", "right"))
    assert outcome.right
    second, third = asking.requests[1:]
    assert second.messages[0].content == "wrOng"
    assert "O is a capital" in second.messages[1].content
    assert "Reply with letters." in third.messages[1].content
    assert "attempt 1: O (word)" in third.messages[1].content
    assert len({request.sample for request in asking.requests}) == 3


async def test_never_right_is_refused_after_four_attempts():
    outcome = await making(letters({}), asking := Asking("A", "B", "C", "D", "never asked"))
    assert (outcome.attempt, outcome.right, len(outcome.attempts)) == (None, False, 4)
    assert len(asking.requests) == 4


async def test_the_best_attempt_is_kept_where_its_faults_may_stay():
    weigh = dict.fromkeys("ABC", Weight.correct)
    outcome = await making(letters(weigh), Asking("ABC", "aB", "aBX", "AB"))
    assert not outcome.right
    assert outcome.attempt is not None
    assert outcome.attempt.content == "aB"


async def test_advice_is_told_once():
    outcome = await making(letters({"A": Weight.advise}), asking := Asking("A", "A"))
    assert outcome.right
    assert len(asking.requests) == 2


async def test_what_is_on_record_sends_nothing_back():
    outcome = await making(letters({"A": Weight.accept}), Asking("A"))
    assert outcome.right and outcome.attempt is not None
    assert codes(outcome.attempt.findings) == ["A"]


@pytest.mark.parametrize("kind", [FaultKind.empty, FaultKind.refusal, FaultKind.length])
async def test_an_empty_refused_or_cut_reply_is_an_attempt(kind: FaultKind):
    outcome = await making(letters({}), asking := Asking(ModelFault(kind, "nothing useful."), "right"))
    assert outcome.right
    assert "nothing useful" in asking.requests[1].messages[-1].content


async def test_a_fault_of_the_server_is_none():
    with pytest.raises(ModelFault):
        await making(letters({}), Asking(ModelFault(FaultKind.wrong_key, "no.")))


async def test_a_person_s_reason_sends_a_right_attempt_back():
    said = Finding(REJECTED, "error", "word", "too plain")
    earlier = [Attempt(1, "plain", (said,))]
    outcome = await making(letters({}), asking := Asking("fancy"), earlier=earlier, allowed=5)
    assert outcome.attempt is not None
    assert outcome.attempt.content == "fancy"
    assert "too plain" in asking.requests[0].messages[-1].content


async def test_a_hint_goes_into_the_prompt():
    await making(letters({}), asking := Asking("right"), hint="shorter, please")
    assert "shorter, please" in asking.requests[0].messages[0].content
