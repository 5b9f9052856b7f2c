"""Exporting a subset in a format: the one door to all of them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from curation.exports.folder import Privacy, Progress, WrittenFile, new_folder, write_json
from curation.extras import require
from curation.subset import Subset, changed
from pipeline.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.model import Environment
    from pipeline.runtime.tools import Tool
    from pipeline.workspace import Workspace


class Format(StrEnum):
    """What exports come in."""

    awm = "awm"
    hf = "hf"
    verl = "verl"
    trl = "trl"
    mcp = "mcp"


def export(
    workspace: Workspace, folder: Path, layout: Format, subset: Subset, *, progress: Progress | None = None
) -> dict[str, WrittenFile]:
    """Write a subset to a new folder; returns its files by name. `progress` hears from the format that takes long, hf.

    The folder appears whole or not at all. Raises UserError where it exists and is not empty or cannot be written,
    where an environment holds this machine's paths or secrets, or where a format that gives environments as they are
    now (`awm`, `mcp`) meets one that has changed since it was picked.
    """
    if layout in (Format.hf, Format.verl):
        require("hf", f"The {layout} format")
    if layout in (Format.awm, Format.mcp) and (names := changed(workspace.catalog, subset)):
        raise UserError(
            f"{', '.join(names[:5])} changed after the subset was made: make it again, or export it as hf, which "
            "gives what was picked."
        )
    privacy = Privacy(workspace.path)
    privacy.check_row(subset.to_json(), "The recipe or card")
    with new_folder(folder) as draft:
        files = _write(workspace, layout, subset, draft=draft, folder=folder, privacy=privacy, progress=progress)
        files["subset.json"] = write_json(draft / "subset.json", subset.to_json())
    return dict(sorted(files.items()))


def _write(
    workspace: Workspace,
    layout: Format,
    subset: Subset,
    *,
    draft: Path,
    folder: Path,
    privacy: Privacy,
    progress: Progress | None,
) -> dict[str, WrittenFile]:
    catalog = workspace.catalog
    match layout:
        case Format.awm:
            from curation.exporters import write_awm

            return write_awm(catalog, draft, sorted(subset.environments()), privacy)
        case Format.hf:
            from curation.exports.hf import write_hf
            from pipeline.runtime.host import Host, LoadFailed

            with Host.from_settings(workspace.settings) as host:

                def tools(environment: Environment) -> Sequence[Tool] | None:
                    try:
                        with host.program(environment) as program:
                            return program.tools
                    except LoadFailed:
                        return None

                return write_hf(catalog, draft, subset, privacy, tools=tools, progress=progress)
        case Format.verl:
            from curation.exports.verl import write_verl

            return write_verl(catalog, draft, subset, privacy)
        case Format.trl:
            from curation.exports.trl import write_trl

            return write_trl(catalog, draft, subset, privacy)
        case Format.mcp:
            from curation.exports.mcp import write_mcp

            return write_mcp(draft, subset, privacy, workspace=workspace.path, home=folder)
