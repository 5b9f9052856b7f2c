"""Small sets of environments with known concepts, written by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from pipeline.model import Author, AuthorKind, Environment, Mode, Operation, Part, normalise
from pipeline.parts import verifier_slot
from pipeline.workspace import Workspace

RIDES = "lets riders request a car, follows drivers on a map, and charges fares by distance after the trip"
BOOKS = "lends books and journals to readers, keeps waiting lists for titles, and collects fees for late returns"
FARMS = "plans crops by field and season, records harvest weights, and schedules irrigation and machinery"

KNOWN = (
    ("Uber", "rides", f"Uber {RIDES}.", ("Request a car to the airport.", "Rate the driver of my last trip.")),
    ("Lyft", "rides", f"Lyft {RIDES}.", ("Request a car to the station.", "Rate the driver of my last ride.")),
    ("Bolt Rides", "rides", f"Bolt Rides {RIDES}.", ("Request a car to the office.", "Rate the driver I had.")),
    ("Biblio", "library", f"Biblio {BOOKS}.", ("Reserve a book about birds.", "Renew my loans by a week.")),
    ("Shelfmark", "library", f"Shelfmark {BOOKS}.", ("Reserve a book about boats.", "Renew my loans by a day.")),
    ("Furrow", "farm", f"Furrow {FARMS}.", ("Record today's wheat harvest.", "Plan maize on the north field.")),
)
"""Title, domain, description and tasks of six environments in three concepts."""

TOOLS = {
    "rides": ("request_ride", "track_driver", "rate_driver", "pay_fare"),
    "library": ("reserve_title", "renew_loan", "list_overdue_loans"),
    "farm": ("record_harvest", "plan_crop", "schedule_irrigation"),
}


def environment(title: str, domain: str, description: str, tasks: tuple[str, ...]) -> Environment:
    """One environment of `KNOWN` as a value."""
    operations = tuple(Operation(name, "POST", f"/{name}") for name in TOOLS[domain])
    return Environment(normalise(title), title, description, domain=domain, tasks=tasks, operations=operations)


def fill(workspace: Workspace, rows: Iterable[tuple[str, str, str, tuple[str, ...]]] = KNOWN) -> None:
    """Put environments into a workspace, each task with a verifier in code mode."""
    author = Author(AuthorKind.blueprint, "tests")
    for title, domain, description, tasks in rows:
        name = normalise(title)
        endpoints = [{"operation_id": tool, "method": "POST", "path": f"/{tool}"} for tool in TOOLS[domain]]
        parts = {
            Part.scenario: {"name": title, "description": description},
            Part.tasks: list(tasks),
            Part.schema: {"tables": [{"name": domain, "ddl": f"CREATE TABLE {domain} (id INTEGER PRIMARY KEY)"}]},
            Part.spec: {"api_groups": [{"group_name": domain, "endpoints": endpoints}]},
        }
        for part, content in parts.items():
            workspace.catalog.put(
                name, part, json.dumps(content), author=author, title=title, origin="blueprint", domain=domain
            )
        for task in range(len(tasks)):
            code = f"def verify_task_completion(initial, final, answer):  # {task}\n    return {{'result': 'others'}}\n"
            slot = verifier_slot(task, Mode.code)
            workspace.catalog.put(name, Part.verifier, code, slot=slot, author=author)


def new_workspace(folder: Path) -> Workspace:
    """A workspace that holds `KNOWN`."""
    workspace = Workspace.open(folder, create=True)
    fill(workspace)
    return workspace
