"""`trl`: prompts in TRL's conversational format with references to environments, one JSON lines file a split.

TRL hands every column beside `prompt` to the environment's `reset(**row)` and to reward functions, so a row says
which environment and task to start, and the digests of the contents it was made for.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import orjson

from curation.exports.folder import Privacy, WrittenFile, write_text, written
from curation.exports.readme import readme
from curation.subset import TEST, TRAIN, Subset, frozen_environment
from pipeline.catalog import Catalog
from pipeline.model import content_hash
from pipeline.parts import dumps

BODY = """
```python
from datasets import load_dataset

prompts = load_dataset("json", data_files={"train": "train.jsonl"})["train"]
```

`environment` and `task` name what to start, in the workspace this was exported from (or in one that an `awm` export of
the same subset was imported into); `contents` is a digest of the environment as it was picked.
"""


def write_trl(catalog: Catalog, folder: Path, subset: Subset, privacy: Privacy) -> dict[str, WrittenFile]:
    """Write a subset into a folder; returns the files by name. Raises UserError where something private is found."""
    files = {}
    for split in (TRAIN, TEST):
        if not subset.environments(split):
            continue
        path, rows = folder / f"{split}.jsonl", 0
        with path.open("wb") as file:
            for row in privacy.checked(_rows(catalog, subset, split), itemgetter("environment")):
                file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
                rows += 1
        files[path.name] = written(path, rows)
    files["README.md"] = write_text(folder / "README.md", readme(subset, BODY))
    return files


def _rows(catalog: Catalog, subset: Subset, split: str) -> Iterator[dict[str, Any]]:
    for name, picks in subset.pairs(split).items():
        environment = frozen_environment(catalog, subset, name)
        contents = content_hash(dumps(subset.contents[name]))
        for pick in picks:
            yield {
                "prompt": [{"role": "user", "content": environment.tasks[pick.task]}],
                "environment": name,
                "task": pick.task,
                "contents": contents,
                "concept": pick.concept,
                "rank": pick.rank,
            }
