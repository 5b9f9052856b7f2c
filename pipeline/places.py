"""Files and folders as a person names them."""

from __future__ import annotations

from pathlib import Path

from pipeline.errors import UserError


def named_place(named: str | Path) -> Path:
    """The absolute path of what was named; a `~` at its beginning is a home folder. Raises UserError for nobody's."""
    try:
        return Path(named).expanduser().absolute()
    except RuntimeError:
        raise UserError(f"{named} cannot be found: there is no home folder of that user.") from None
