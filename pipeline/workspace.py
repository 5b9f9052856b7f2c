"""A folder that holds one catalog, the databases built from it, its runs and its logs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pipeline import settings as settings_file
from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.places import named_place
from pipeline.settings import Settings

CATALOG = "catalog.db"
FOLDERS = ("databases", "runs", "logs")


@dataclass(frozen=True)
class Workspace:
    """An open workspace. A context manager; closing it closes the catalog."""

    path: Path
    catalog: Catalog
    settings: Settings

    @classmethod
    def open(cls, path: str | Path | None = None, create: bool = False) -> Workspace:
        """Open the workspace at `path`, or in the usual place (see `locate`); make it where `create` allows it.

        Raises UserError where there is none, the folder is something else, or it cannot be opened.
        """
        chosen = settings_file.load()
        path = locate(path)
        if not is_workspace(path, chosen):
            _require_room(path, create)
        try:
            path.mkdir(parents=True, exist_ok=True)
            for folder in FOLDERS:
                (path / folder).mkdir(exist_ok=True)
        except OSError as error:
            raise UserError(f"The workspace {path} cannot be written to: {error.strerror}.") from None
        return cls(path, Catalog.open(chosen.database_url or path / CATALOG), chosen)

    @property
    def databases(self) -> Path:
        """Snapshots as SQLite files."""
        return self.path / "databases"

    @property
    def runs(self) -> Path:
        """One folder a run."""
        return self.path / "runs"

    @property
    def logs(self) -> Path:
        """What detached processes said."""
        return self.path / "logs"

    def close(self) -> None:
        """Close the catalog."""
        self.catalog.close()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def locate(path: str | Path | None = None) -> Path:
    """Where the workspace is: `path`, `$AWM_WORKSPACE`, `./awm-workspace` if it exists, or the user's data folder."""
    chosen = path or os.environ.get("AWM_WORKSPACE")
    if chosen:
        return named_place(chosen)
    here = Path("awm-workspace").absolute()
    if here.exists():
        return here
    from platformdirs import user_data_path

    return user_data_path("awm-studio") / "workspace"


def is_workspace(path: Path, settings: Settings) -> bool:
    """Whether a folder is a workspace: by its catalog, or by its folders where the catalog is kept elsewhere."""
    if settings.database_url:
        return all((path / folder).is_dir() for folder in FOLDERS)
    return (path / CATALOG).is_file()


def _require_room(path: Path, create: bool) -> None:
    """Raise UserError unless `path` may become a workspace: new, empty, or one whose making was interrupted."""
    try:
        names = {entry.name for entry in path.iterdir()}
    except FileNotFoundError:
        names = set()
    except NotADirectoryError:
        raise UserError(f"{path} is a file, not a workspace folder.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    if names - set(FOLDERS):
        raise UserError(f"{path} is not a workspace (it has no {CATALOG}); name another folder with --workspace.")
    if not create:
        raise UserError(
            f"There is no workspace at {path} yet: awm-studio import FOLDER or awm-studio synth makes one, "
            "--workspace DIR names another."
        )
