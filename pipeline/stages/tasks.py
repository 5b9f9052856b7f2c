"""Stage 2: what the signed-in user of a scenario would ask for."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from pipeline.findings import Finding
from pipeline.model import Environment, Part
from pipeline.rules.tasks import task_findings
from pipeline.stages.json_reply import TEXT, array, content_of, read_document, record
from pipeline.stages.prompts import render
from pipeline.stages.step import Step

TASKS = 10
"""Tasks a scenario, as in AWM."""

SHAPE = record(tasks=array(TEXT))


def steps(environment: Environment) -> tuple[Step, ...]:
    """One request for all tasks."""
    return (
        Step(
            stage="tasks",
            part=Part.tasks,
            what="JSON document with the tasks",
            prompt=render(
                "tasks",
                name=environment.title or environment.name,
                description=environment.description,
                count=TASKS,
                today=f"{environment.now:%Y-%m-%d}",
            ),
            schema=SHAPE,
            read=read,
            check=lambda content, _: check(content),
        ),
    )


def read(text: str) -> str:
    """The tasks as a JSON list. Raises Unreadable."""
    tasks = read_document(text, SHAPE)["tasks"]
    return content_of([" ".join(task.split()) for task in tasks])


def check(content: str) -> Sequence[Finding]:
    """What the tasks' text shows; nothing is there yet that could be executed."""
    return task_findings(orjson.loads(content), count=TASKS)
