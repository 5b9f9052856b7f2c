"""`hf`: a folder that `datasets.load_dataset` reads, and that can be uploaded to the Hugging Face hub as it is.

Two configurations: `tasks` (the default), one row a pair, with splits; and `environments`, one row an environment.
Everything whose shape differs from environment to environment (schemas, specs, tool schemas, calls) travels as JSON
text, because parquet would give all rows the union of all keys, and a round trip would not be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.exports.folder import Privacy, Progress, WrittenFile, write_text
from curation.exports.parquet import write_parquet
from curation.exports.readme import licence_id, readme
from curation.subset import TEST, TRAIN, Subset, frozen_contents, frozen_environment
from pipeline.catalog import Catalog
from pipeline.model import Environment, Mode, Part, Solution
from pipeline.parts import dumps

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.runtime.tools import Tool

ToolListing = Callable[[Environment], "Sequence[Tool] | None"]
"""Gives the tools that an agent sees in an environment, or None where its program does not load."""

TASK_COLUMNS = (
    "environment", "task", "instruction", "verifier_code", "verifier_sql", "solution_json", "concept", "rank",
)  # fmt: skip
ENVIRONMENT_COLUMNS = (
    "name", "title", "description", "origin", "domain", "now", "schema_json", "sample_json", "spec_json", "code",
    "tools_json",
)  # fmt: skip
NUMBERS = ("task", "rank")

SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
"""The hub's size categories, by their upper ends."""

BODY = """
```python
from datasets import load_dataset

tasks = load_dataset("PATH_OR_NAME")  # splits train and, where concepts are held out, test
environments = load_dataset("PATH_OR_NAME", "environments", split="train")
```

A task's `environment` is the `name` of a row of `environments`. Columns that end in `_json` hold JSON text.
The code is written by a generator: run it only in a sandbox.
"""


def write_hf(
    catalog: Catalog,
    folder: Path,
    subset: Subset,
    privacy: Privacy,
    *,
    tools: ToolListing,
    progress: Progress | None = None,
) -> dict[str, WrittenFile]:
    """Write a subset into a folder; returns the files by name. Raises UserError where something private is found.

    `progress` is told how many of how many environments are written: listing their tools takes a moment each.
    """
    splits = [split for split in (TRAIN, TEST) if subset.environments(split)]
    files = {}
    for split in splits:
        rows = privacy.checked(_task_rows(catalog, subset, split), itemgetter("environment"))
        files[f"data/{split}.parquet"] = write_parquet(folder / f"data/{split}.parquet", _schema(TASK_COLUMNS), rows)
    rows = privacy.checked(_environment_rows(catalog, subset, tools, progress), itemgetter("name"))
    path = "environments/environments.parquet"
    files[path] = write_parquet(folder / path, _schema(ENVIRONMENT_COLUMNS), rows)
    files["README.md"] = write_text(folder / "README.md", readme(subset, BODY, _front_matter(subset, splits)))
    return files


def _front_matter(subset: Subset, splits: Sequence[str]) -> dict[str, Any]:
    pairs = len(subset.picks)
    data = [{"split": split, "path": f"data/{split}.parquet"} for split in splits]
    return {
        "license": licence_id(subset.card),
        "pretty_name": subset.recipe.name,
        "task_categories": ["text-generation"],
        "tags": ["tool-use", "agents", "reinforcement-learning", "synthetic"],
        "size_categories": [next((name for end, name in SIZES if pairs < end), "n>1M")],
        "configs": [
            {"config_name": "tasks", "data_files": data, "default": True},
            {"config_name": "environments", "data_files": "environments/environments.parquet"},
        ],
    }


def _schema(columns: Sequence[str]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([pa.field(name, pa.int32() if name in NUMBERS else pa.string()) for name in columns])


def _task_rows(catalog: Catalog, subset: Subset, split: str) -> Iterator[dict[str, Any]]:
    for name, picks in subset.pairs(split).items():
        environment = frozen_environment(catalog, subset, name)
        for pick in picks:
            yield {
                "environment": name,
                "task": pick.task,
                "instruction": environment.tasks[pick.task],
                "verifier_code": _verifier(environment, pick.task, Mode.code),
                "verifier_sql": _verifier(environment, pick.task, Mode.sql),
                "solution_json": _solution(environment.solution(pick.task)),
                "concept": pick.concept or None,
                "rank": pick.rank,
            }


def _verifier(environment: Environment, task: int, mode: Mode) -> str | None:
    found = environment.verifier(task, mode)
    return found.code if found else None


def _solution(solution: Solution | None) -> str | None:
    if solution is None:
        return None
    calls = [{"tool": call.tool, "arguments": dict(call.arguments)} for call in solution.calls]
    return dumps({"calls": calls, "answer": solution.answer})


def _environment_rows(
    catalog: Catalog, subset: Subset, tools: ToolListing, progress: Progress | None
) -> Iterator[dict[str, Any]]:
    names = subset.environments()
    for number, name in enumerate(names, 1):
        contents = frozen_contents(catalog, subset, name)
        environment = frozen_environment(catalog, subset, name)
        listed = tools(environment)
        schemas = [{"name": t.name, "description": t.description, "input_schema": t.input_schema} for t in listed or ()]
        yield {
            "name": name,
            "title": environment.title,
            "description": environment.description,
            "origin": environment.origin,
            "domain": environment.domain,
            "now": environment.now.isoformat(),
            "schema_json": contents.get((Part.schema, "")),
            "sample_json": contents.get((Part.sample, "")),
            "spec_json": contents.get((Part.spec, "")),
            "code": environment.code,
            "tools_json": dumps(schemas) if listed is not None else None,
        }
        if progress:
            progress(number, len(names))
