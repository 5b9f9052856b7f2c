"""Runs verifiers from the host's side: in fresh locked-down processes, whose words are checked.

A verdict that counts (`ask`) has a process of its own. Many verdicts of one verifier (`ask_all`) share one, as long as
it lives.

What protects a verdict: no environment's code ever ran in the process that gives it, and the databases it judges are
bytes the host holds. What does not: a verifier that is itself hostile makes its own verdict, and can make up the
list of statements it ran. That is for the audit to find.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, get_args

from pipeline.model import Verifier
from pipeline.runtime.launcher import Launcher, Worker, WorkerLost
from pipeline.runtime.limits import Limits
from pipeline.runtime.rpc import Message

Word = Literal["complete", "others", "evidence", "judge_error"]

VERDICTS = {"code": ("complete", "others", "judge_error"), "sql": ("evidence", "judge_error")}
"""What a verifier of each mode can come to."""

QUERY_FIELDS = {"db": (str,), "sql": (str,), "ok": (bool,), "error": (str, type(None))}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a verifier says about one rollout.

    `complete` or `others` in code mode, `evidence` (a dict for a judge) in sql mode. `judge_error` is no verdict:
    the verifier or a database is broken, `error` says how, and the rollout says nothing about the agent. `queries`
    are the statements it ran, as `{"db", "sql", "ok", "error"}` with db `initial`, `final` or `other`; `reads` the
    (db, table, column) they looked at, with an empty column where only the number of rows mattered.

    `said` is what a verifier in code mode returned: also `complete` where a statement had failed and it went on.
    """

    verdict: Word
    evidence: dict[str, Any] | None = None
    error: str | None = None
    queries: tuple[dict[str, Any], ...] = ()
    ms: float = 0.0
    reads: tuple[tuple[str, str, str], ...] = ()
    said: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """What a verifier is to judge: two snapshots, an answer, and the time it sees."""

    initial: bytes
    final: bytes
    answer: str | None
    now: datetime


def ask(launcher: Launcher, verifier: Verifier, case: Case, *, limits: Limits) -> Verdict:
    """The verdict of a verifier, in a worker of its own."""
    (verdict,) = ask_all(launcher, verifier, [case], limits=limits)
    return verdict


def ask_all(launcher: Launcher, verifier: Verifier, cases: Iterable[Case], *, limits: Limits) -> Generator[Verdict]:
    """The verdicts of one verifier on many cases, in order, as they are asked for.

    They come from one worker, so what an honest verifier says of one cannot depend on another; one that hides
    something in Python's own modules could make it so. A worker that dies, or that was given files, is replaced.
    """
    worker: Worker | None = None
    try:
        for case in cases:
            began = time.perf_counter()
            try:
                if worker is None or not worker.alive:
                    worker = launcher.start(keep_writable=True)
                reply = _reply(worker, verifier, case, limits=limits)
                if reply.header.get("again") is not True:
                    worker.end()
            except WorkerLost as lost:
                verdict = Verdict("judge_error", error=f"There is no verdict: {lost}.")
            else:
                verdict = read_verdict(reply.header, reply.attachments, verifier.mode.value)
            yield replace(verdict, ms=(time.perf_counter() - began) * 1000)
    finally:
        if worker is not None:
            worker.end()


def _reply(worker: Worker, verifier: Verifier, case: Case, *, limits: Limits) -> Message:
    header = {
        "op": "verify",
        "mode": verifier.mode.value,
        "now": case.now.isoformat(),
        "timeout_s": limits.verify_timeout_s,
    }
    code, said = (text.encode("utf-8", "surrogatepass") for text in (verifier.code, case.answer or ""))
    allowed = limits.verify_timeout_s + limits.grace_s
    return worker.request(header, (code, case.initial, case.final, said), timeout_s=allowed, what="the verifier")


def read_verdict(header: Mapping[str, Any], attachments: Sequence[bytes], mode: str) -> Verdict:
    """The verdict in a worker's reply. A reply that is not exactly of the expected form is a judge_error."""
    if "too_large" in header:
        return Verdict("judge_error", error=f"The verifier's evidence is {header['too_large'] / 1e6:.0f} MB long.")
    word, error, queries, reads, said = (header.get(key) for key in ("verdict", "error", "queries", "reads", "said"))
    evidence: Any = None
    if attachments:
        try:
            evidence = json.loads(attachments[0])
        except (ValueError, RecursionError):
            return _malformed()
    good = (
        word in get_args(Word)
        and word in VERDICTS[mode]
        and isinstance(error, str | None)
        and isinstance(queries, list)
        and all(_is_query(query) for query in queries)
        and isinstance(reads, list)
        and all(_is_read(read) for read in reads)
        and said in ("complete", "others", None)
        and isinstance(evidence, dict) == (word == "evidence")
    )
    if not good:
        return _malformed()
    seen = tuple((label, table, column) for label, table, column in reads)
    return Verdict(word, evidence, error, tuple(queries), reads=seen, said=said)


def _is_query(query: Any) -> bool:
    return isinstance(query, dict) and all(isinstance(query.get(name), kinds) for name, kinds in QUERY_FIELDS.items())


def _is_read(read: Any) -> bool:
    return isinstance(read, list) and len(read) == 3 and all(isinstance(word, str) for word in read)


def _malformed() -> Verdict:
    return Verdict("judge_error", error="The verifier's process did not answer in the agreed form.")
