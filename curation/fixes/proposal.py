"""What a proposed remedy is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.model import Part

Contents = Mapping[tuple[Part, str], str]
"""The contents of an environment's parts, by part and slot, as the catalog keeps them."""


@dataclass(frozen=True, slots=True)
class PartEdit:
    """A part's content before and after."""

    part: Part
    slot: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A remedy for one finding, told by its `code` and `where`. `says` is what is done, in words, and what is not."""

    code: str
    where: str
    says: str
    edits: tuple[PartEdit, ...]
