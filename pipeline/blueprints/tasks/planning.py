"""Chooses the tasks of an environment: what they say and mean, how they are solved, and how one gets them wrong."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pipeline.blueprints.language.domain import Message, TaskForm
from pipeline.blueprints.language.expressions import Attribute, Node
from pipeline.blueprints.rows.seeding import Seeding
from pipeline.blueprints.tasks.meaning import Impossible, Meaning, Outcome, attempt, bind, refusal, single, try_out
from pipeline.blueprints.tasks.solutions import Solver, tool_calls
from pipeline.blueprints.tasks.wording import filled, shown
from pipeline.model import Call

TaskKind = Literal["direct", "choose", "ask", "several", "refuse"]

SHARE: Mapping[TaskKind, int] = {"choose": 3, "ask": 2, "several": 2, "refuse": 2, "direct": 1}
"""Of ten tasks: how many find and act, only answer, need several actions, must be refused, or want one action."""

OPENINGS = ("", "", "Please", "I need you to", "Could you please", "I want you to", "Kindly")
"""What an instruction may begin with."""

_NO_INSTRUCTION = """
a after all among are as at by does during everybody for from has how i if in is it just my no nobody of on our over
somebody taking the there these to we what whatever when where which who whose with
"""
NO_INSTRUCTION = frozenset(_NO_INSTRUCTION.split())
"""First words of a task that is not an instruction."""

ALIKE = 0.75
"""Share of their words that two tasks of one environment may have in common."""

REBINDS = 12
"""How often a form is tried with other rows before it is left out."""

HINTS = (
    "if that is not possible, change nothing and tell me why",
    "should anything stand against it, leave everything as it is and give me the reason",
    "if a rule forbids it, do nothing at all and say which",
)
"""Added to what must be refused, and to half of what need not be, so that the words alone do not tell."""


@dataclass(frozen=True)
class Wrong:
    """A way of getting a task wrong that every sound verifier rejects.

    `how`: other row, one too many, only half, and something else, did it anyway (where the task's condition does not
    hold), wrong answer, no answer, claims it was done, wrong amount (of a refusal that was asked for one).
    """

    how: str
    calls: tuple[Call, ...]
    answer: str | None


@dataclass(frozen=True)
class Task:
    """A task of an environment.

    `reasons` are words of which a refusing answer has to have one, `amount` the number it has to have.
    """

    kind: TaskKind
    text: str
    meaning: Meaning
    reasons: tuple[str, ...]
    amount: float | None
    calls: tuple[Call, ...]
    answer: str | None
    wrongs: tuple[Wrong, ...]


class Planner:
    """Plans the tasks of one environment over its finished rows."""

    def __init__(self, seeding: Seeding, solver: Solver, rng: random.Random) -> None:
        self.seeding, self.solver, self.rng = seeding, solver, rng
        self.world = seeding.world

    def plan(self, count: int) -> list[Task]:
        """At most `count` tasks of different kinds, forms and words, in random order."""
        candidates = self.candidates()
        self.rng.shuffle(candidates)
        candidates.sort(key=lambda task: task.meaning.form.shared)
        chosen: list[Task] = []
        for kind, share in SHARE.items():
            mine = [task for task in candidates if task.kind == kind]
            self._take(mine, chosen, max(1, round(share * count / 10)))
        rest = sorted((task for task in candidates if task not in chosen), key=lambda task: task.kind == "refuse")
        self._take(rest, chosen, count - len(chosen))
        self.rng.shuffle(chosen)
        return [replace(task, wrongs=tuple(self.wrongs(task, chosen))) for task in chosen]

    def _take(self, candidates: Sequence[Task], chosen: list[Task], count: int) -> None:
        """Add up to `count` of the candidates that do not say what another chosen one says."""
        for task in candidates:
            if count and not any(alike(task.text, other.text) for other in chosen):
                chosen.append(task)
                count -= 1

    def candidates(self) -> list[Task]:
        """A task of every form that these rows allow."""
        return [*self.declared(), *self.of_actions()]

    def declared(self) -> Iterator[Task]:
        """Tasks of the domain's own forms."""
        for form in self.world.domain.tasks.values():
            for _ in range(REBINDS):
                try:
                    meaning = bind(form, self.seeding, self.rng)
                except Impossible:
                    continue
                if found := list(self.task(meaning)):
                    yield from found
                    break

    def of_actions(self) -> Iterator[Task]:
        """Tasks that want one action, where it is accepted and where each of its rules refuses it."""
        for action in self.world.domain.actions.values():
            if not action.asks or not action.does:
                continue
            form = single(action)
            trials = try_out(action, self.seeding)
            if trials.accepted:
                bound = self.rng.choice(trials.accepted)
                outcome = attempt(form.steps, (), bound, self.world)
                yield from self.task(Meaning(form, (outcome,)), hint=self.rng.random() < 0.5)
            for rule, found in trials.refused.items():
                bound, reason = self.rng.choice(found)
                outcome = attempt((), (), bound, self.world)
                yield from self.task(Meaning(refusal(form, rule), (outcome,), reason), hint=True)

    def task(self, meaning: Meaning, *, hint: bool = False) -> Iterator[Task]:
        """The task of a meaning, if a solution is short enough and a reason can be told from the task's own words."""
        calls = self.solver.calls(meaning)
        text = filled(self.world, say := self.rng.choice(meaning.form.says), meaning.variables)
        text = self.opened(say, text)
        if hint:
            text = f"{text.removesuffix('.')}; {self.rng.choice(HINTS)}."
        reasons = reason_words(meaning.reason, text)
        if calls is not None and (reasons or not meaning.reason):
            answer = f"I changed nothing: {meaning.reason}." if reasons else self.answer(meaning)
            amount = amount_asked(meaning.reason, text) if meaning.form.because else None
            yield Task(kind_of(meaning), text, meaning, reasons, amount, calls, answer, ())

    def opened(self, say: Message, text: str) -> str:
        """An instruction with one of several openings; what is not one (a question, a remark) stays as it is."""
        first = say.parts[0]
        if not isinstance(first, str) or first.split()[0].lower().strip(",:") in NO_INSTRUCTION:
            return text
        opening = self.rng.choice(OPENINGS)
        return f"{opening} {text[0].lower()}{text[1:]}" if opening else text

    def answer(self, meaning: Meaning) -> str | None:
        """The final answer of the reference: what was asked for, and nothing else."""
        if not meaning.form.answer:
            return None
        said = zip(meaning.outcomes[0].answer, meaning.form.answer, strict=True)
        return "; ".join(shown(value, expression.kind) for value, expression in said)

    # Getting it wrong

    def wrongs(self, task: Task, others: Sequence[Task]) -> Iterator[Wrong]:
        """Ways of getting a task wrong that the tools allow."""
        meaning, right = task.meaning, task.meaning.outcomes[0]
        doing = tool_calls(self.solver, right)
        if doing:
            for how, other in self.on_another_row(meaning):
                answer = self.answer(replace(meaning, outcomes=(other,)))
                yield Wrong(how, tool_calls(self.solver, other), answer)
            if len(doing) > 1:
                yield Wrong("only half", doing[:-1], task.answer)
        if extra := self.something_else(right, others):
            yield Wrong("and something else", (*doing, extra), task.answer)
        if task.answer is not None:
            yield Wrong("no answer", doing, None)
        if meaning.form.answer:
            yield Wrong("wrong answer", doing, self.wrong_answer(meaning))
        if other := self.otherwise(meaning):
            yield Wrong("did it anyway", tool_calls(self.solver, other), task.answer)
        if task.reasons:
            yield Wrong("claims it was done", (), f"Done: {task.text}")
        if task.amount is not None and task.answer:
            yield Wrong("wrong amount", (), _NUMBER.sub(r"1\g<0>", task.answer))

    def on_another_row(self, meaning: Meaning) -> Iterator[tuple[str, Outcome]]:
        """The same goal for a row that is not the one described (or named), or for one more than those described."""
        form = meaning.form
        used = frozenset[str]().union(*(e.variables for step in form.steps for e in step.arguments.values()))
        sets = {step.each[1] for step in form.steps if step.each}
        names = [item.name for item in form.find if item.name in used] or [
            item.name for item in form.given if item.entity and item.name in used
        ]
        for name in (*names[-1:], *sorted(sets)):
            right = meaning.variables[name]
            known = right if name in sets else [outcome.variables[name] for outcome in meaning.outcomes]
            rows = [row for row in self.world[known[0].entity] if row not in known]
            self.rng.shuffle(rows)
            for row in rows:
                value = [*right, row] if name in sets else row
                if (other := self.instead(meaning, {name: value})) and not any(
                    other.changes.equal(outcome.changes) for outcome in meaning.outcomes
                ):
                    yield "one too many" if name in sets else "other row", other
                    break

    def instead(self, meaning: Meaning, values: Mapping[str, Any]) -> Outcome | None:
        """The goal with some variables replaced; None where a rule stands against it or it changes nothing."""
        form = meaning.form
        bound = {name: meaning.variables[name] for name in _before_steps(form)}
        try:
            other = attempt(form.steps, form.answer, {**bound, **values}, self.world)
        except Impossible:
            return None
        return None if other.changes.empty else other

    def otherwise(self, meaning: Meaning) -> Outcome | None:
        """What would be right if the task's condition were not as it is, where no rule stands against it."""
        form = meaning.form
        bound = {name: meaning.variables[name] for name in _before_steps(form)}
        try:
            other = attempt(form.otherwise, (), bound, self.world)
        except Impossible:
            return None
        return None if other.changes.empty else other

    def something_else(self, right: Outcome, others: Sequence[Task]) -> Call | None:
        """One more action that nobody asked for and that is possible after the right ones."""
        world = self.world
        for other in others:
            for extra in other.meaning.outcomes[0].performed[:1]:
                try:
                    for done in right.performed:
                        world.perform(done.action, done.arguments)
                    before = world.journal.changes()
                    if next(world.refusals(extra.action, extra.arguments), None):
                        continue
                    _, broken = world.perform(extra.action, extra.arguments)
                    if broken is None and world.journal.changes() != before:
                        return self.solver.action(extra)
                finally:
                    world.undo()
        return None

    def wrong_answer(self, meaning: Meaning) -> str:
        """An answer like the right one that is not right for any outcome."""
        expression, value = meaning.form.answer[0], meaning.outcomes[0].answer[0]
        right = {str(outcome.answer[0]) for outcome in meaning.outcomes}
        match value:
            case bool():
                return shown(not value, expression.kind)
            case int() | float():
                return shown(value + 1, expression.kind)
            case list():
                return shown(value[:-1], expression.kind) if len(value) > 1 else "none"
            case _:
                return next(other for other in self.like(expression.node, value) if other not in right)

    def like(self, node: Node, value: str) -> Iterator[str]:
        """Other values of the field that an answer is a value of."""
        if isinstance(node, Attribute) and node.entity:
            yield from (str(getattr(row, node.field)) for row in self.world[node.entity])
        yield f"not {value[::-1]}"


def _before_steps(form: TaskForm) -> list[str]:
    return [item.name for item in (*form.given, *form.find)]


def alike(one: str, other: str) -> bool:
    """Whether two tasks say the same but for a few words."""
    here, there = set(one.lower().split()), set(other.lower().split())
    return len(here & there) / len(here | there) >= ALIKE


def kind_of(meaning: Meaning) -> TaskKind:
    """What sort of task a meaning makes."""
    performed = meaning.outcomes[0].performed
    if not performed:
        return "refuse" if meaning.reason else "ask"
    if len(performed) > 1:
        return "several"
    return "choose" if meaning.form.find else "direct"


_SAYING_NOTHING = """
the and are but for has have had was were not that this which with only can could may must its you your all already
than then there here from into more most become becomes does did been being one two who any before after asked
"""
STOP_WORDS = frozenset(_SAYING_NOTHING.split())
"""Words of a reason that say nothing about it."""

BEGIN = 6
"""Letters by which words are told apart, so that "discard" and "discarded" are one."""

_WORD = re.compile(r"[a-z0-9][a-z0-9+.-]*[a-z0-9+]|\d")


def reason_words(reason: str, text: str) -> tuple[str, ...]:
    """What an answer may say to show the reason: words and values of it that neither the task says nor any reason.

    Words are told apart by how they begin, as `gives_reason` in a verifier does.
    """
    known = {word[:BEGIN] for word in _WORD.findall(text.lower())}
    words = dict.fromkeys(word for word in _WORD.findall(reason.lower()) if word not in STOP_WORDS)
    return tuple(word for word in words if word[:BEGIN] not in known and (len(word) > 2 or not word.isalpha()))


_NUMBER = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?![\w-])")
_HOW_MUCH = re.compile(r"\bhow (much|many)\b")


def amount_asked(reason: str, text: str) -> float | None:
    """The first number of a reason, if a task asks for it by "how much" or "how many" and does not say it itself."""
    if not _HOW_MUCH.search(text):
        return None
    known = set(map(float, _NUMBER.findall(text)))
    return next((number for number in map(float, _NUMBER.findall(reason)) if number not in known), None)
