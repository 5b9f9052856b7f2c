"""`verl`: one parquet file a split, with the columns that verl's dataset and its agent loop read.

Sources, verl-project/verl: `verl/utils/dataset/rl_dataset.py` (`prompt`; `extra_info.index`, `.tools_kwargs`,
`.need_tools_kwargs`), `verl/experimental/agent_loop/tool_agent_loop.py` (`agent_name` "tool_agent";
`tools_kwargs[tool]["create_kwargs"]` goes to the tool's `create`; `extra_info.tool_selection`), and the reward
managers (`data_source`, `reward_model.ground_truth`, `extra_info`).

The two tools are AWM's meta tools, whatever the environment: `list_tools` and `call_tool`. So all rows have the same
struct (with each environment's own tools parquet would give every row the union of all of them), and a tool class
learns from its `create_kwargs` which environment and task it serves.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.exports.folder import Privacy, WrittenFile, write_text
from curation.exports.parquet import write_parquet
from curation.exports.readme import readme
from curation.subset import TEST, TRAIN, Subset, frozen_environment
from pipeline.catalog import Catalog
from pipeline.parts import dumps

if TYPE_CHECKING:
    import pyarrow as pa

META_TOOLS = ("list_tools", "call_tool")
BODY = """
Point verl at the files: `data.train_files=train.parquet`, `data.val_files=test.parquet`,
`actor_rollout_ref.rollout.multi_turn.enable=True`, and a `tool_config_path` that names tool classes for `list_tools`
and `call_tool`. Both get `create_kwargs` with `environment` and `task`; the workspace this was exported from (or an
`awm` export of the same subset, imported) serves them. `reward_model.ground_truth` is JSON text that says the same
and the sha256 of the verifiers the task is judged by.
"""


def write_verl(catalog: Catalog, folder: Path, subset: Subset, privacy: Privacy) -> dict[str, WrittenFile]:
    """Write a subset into a folder; returns the files by name. Raises UserError where something private is found."""
    files = {}
    for split in (TRAIN, TEST):
        if subset.environments(split):
            rows = privacy.checked(_rows(catalog, subset, split), lambda row: row["extra_info"]["environment"])
            files[f"{split}.parquet"] = write_parquet(folder / f"{split}.parquet", _schema(), rows)
    files["README.md"] = write_text(folder / "README.md", readme(subset, BODY))
    return files


def _rows(catalog: Catalog, subset: Subset, split: str) -> Iterator[dict[str, Any]]:
    index = 0
    for name, picks in subset.pairs(split).items():
        environment = frozen_environment(catalog, subset, name)
        for pick in picks:
            reference = {"environment": name, "task": pick.task}
            prefix = f"verifier/{pick.task}/"
            verifiers = {key: sha for key, sha in subset.contents[name].items() if key.startswith(prefix)}
            yield {
                "data_source": f"awm-studio/{subset.recipe.name}",
                "agent_name": "tool_agent",
                "prompt": [{"role": "user", "content": environment.tasks[pick.task]}],
                "ability": "tool use",
                "reward_model": {"style": "rule", "ground_truth": dumps(reference | {"verifiers": verifiers})},
                "extra_info": {
                    "split": split,
                    "index": index,
                    **reference,
                    "concept": pick.concept or None,
                    "rank": pick.rank,
                    "need_tools_kwargs": True,
                    "tool_selection": list(META_TOOLS),
                    "tools_kwargs": {tool: {"create_kwargs": reference} for tool in META_TOOLS},
                },
            }
            index += 1


def _schema() -> pa.Schema:
    import pyarrow as pa

    text, number = pa.string(), pa.int64()
    reference = pa.struct({"environment": text, "task": number})
    return pa.schema(
        {
            "data_source": text,
            "agent_name": text,
            "prompt": pa.list_(pa.struct({"role": text, "content": text})),
            "ability": text,
            "reward_model": pa.struct({"style": text, "ground_truth": text}),
            "extra_info": pa.struct(
                {
                    "split": text,
                    "index": number,
                    "environment": text,
                    "task": number,
                    "concept": text,
                    "rank": number,
                    "need_tools_kwargs": pa.bool_(),
                    "tool_selection": pa.list_(text),
                    "tools_kwargs": pa.struct({tool: pa.struct({"create_kwargs": reference}) for tool in META_TOOLS}),
                }
            ),
        }
    )
