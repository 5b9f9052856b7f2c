"""`mcp`: a client configuration that serves each environment over stdio, in the form MCP clients share.

`mcpServers` with `command`, `args` and `env` is what Claude Desktop, Claude Code (`.mcp.json`), Cursor and the SDK's
own tools read. Paths in it are relative to the folder, so that it can move with the workspace.
"""

from __future__ import annotations

import os
from pathlib import Path

from curation.exports.folder import Privacy, WrittenFile, write_json, write_text
from curation.exports.readme import readme
from curation.subset import Subset

BODY = """
Copy the entries of `mcp.json` into your client's configuration, or start the client in this folder. Each server is
`awm-studio serve ENVIRONMENT`: `awm-studio` must be on the client's PATH. `AWM_WORKSPACE` is relative to this folder:
give an absolute path where the client starts servers elsewhere.
"""


def write_mcp(folder: Path, subset: Subset, privacy: Privacy, *, workspace: Path, home: Path) -> dict[str, WrittenFile]:
    """Write a subset's configuration into a folder that will be at `home`; returns the files by name."""
    place = os.path.relpath(workspace.resolve(), home.resolve())
    servers = {
        name: {"command": "awm-studio", "args": ["serve", name], "env": {"AWM_WORKSPACE": place}}
        for name in subset.environments()
    }
    privacy.check(place, "The configuration")
    return {
        "mcp.json": write_json(folder / "mcp.json", {"mcpServers": servers}),
        "README.md": write_text(folder / "README.md", readme(subset, BODY)),
    }
