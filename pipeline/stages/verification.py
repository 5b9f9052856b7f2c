"""Stage 5: for each task, a verifier that gives a verdict and one that collects evidence. Both are run."""

from __future__ import annotations

import ast
import re
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pipeline.findings import Finding
from pipeline.llm.text import Unreadable, unfence
from pipeline.model import Environment, Mode, Part, Verifier
from pipeline.parts import verifier_slot
from pipeline.rules.verifiers import on_untouched
from pipeline.stages.database import rows_text, schema_text
from pipeline.stages.interface import signatures_text
from pipeline.stages.prompts import render
from pipeline.stages.step import Step

if TYPE_CHECKING:
    from pipeline.runtime.host import Host

FUNCTIONS = {Mode.code: "verify_task_completion", Mode.sql: "verify_task"}
"""The names AWM's verifiers have, by mode."""


def steps(environment: Environment) -> tuple[Step, ...]:
    """A request for each task and mode, all of which may run at once."""
    shared = {
        "schema": schema_text(environment),
        "rows": rows_text(environment),
        "operations": signatures_text(environment),
        "now": f"{environment.now:%Y-%m-%d %H:%M:%S}",
    }
    built = _built_once(environment)
    return tuple(
        _step(environment, number, mode, shared, built) for number in range(len(environment.tasks)) for mode in Mode
    )


def _step(
    environment: Environment, number: int, mode: Mode, shared: dict[str, str], built: Callable[[Host], bytes]
) -> Step:
    return Step(
        stage="verification",
        part=Part.verifier,
        slot=verifier_slot(number, mode),
        what="function",
        prompt=render(f"verifier_{mode}", task=environment.tasks[number], **shared),
        read=lambda text: read(text, mode),
        check=lambda content, host: check(environment, Verifier(number, mode, content), host, built(host)),
    )


def read(text: str, mode: Mode) -> str:
    """The verifier's source in a reply. Raises Unreadable where it does not define the function."""
    source = unfence(text)
    name = FUNCTIONS[mode]
    if not re.search(rf"^(?:async )?def {name}\(", source, re.M):
        raise Unreadable(f"The reply does not define {name}. Reply with that function in one code block.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in generated code is no news to anyone here
            ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise Unreadable(f"The function is not valid Python: {error}.") from None
    return source + "\n"


def check(environment: Environment, verifier: Verifier, host: Host, snapshot: bytes) -> Sequence[Finding]:
    """Run the verifier on the untouched database."""
    return list(on_untouched(verifier, host, snapshot, environment))


def _built_once(environment: Environment) -> Callable[[Host], bytes]:
    """The environment's snapshot, built when it is first wanted; the checks that want it run in several threads."""
    lock, snapshots = threading.Lock(), []

    def snapshot(host: Host) -> bytes:
        with lock:
            if not snapshots:
                snapshots.append(host.build(environment).snapshot)
            return snapshots[0]

    return snapshot
