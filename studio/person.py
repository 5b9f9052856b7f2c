"""Who sits at this machine: the author of what is edited, saved and decided here."""

from __future__ import annotations

import getpass

from pipeline.model import Author, AuthorKind


def person() -> Author:
    """The user as an author of versions."""
    return Author(AuthorKind.person, getpass.getuser())
