"""Where a set is thin, and how to ask for more there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from curation.landscape import Cut, Landscape

EXCERPT = 240
"""Characters of an environment's text that a hint quotes: what it is about, not all it does."""


def sparsest(landscape: Landscape) -> list[int]:
    """The items' positions, the one with the least similar neighbours first."""
    return np.argsort(landscape.crowding(), kind="stable").tolist()


def hint_for(landscape: Landscape, found: Cut, item: int) -> str:
    """What to tell a model that invents scenarios, so that it makes more of the kind that an item is of."""
    concept = found.labels[item]
    members = found.members(concept)
    text = " ".join(landscape.survey.items[item].text.split())
    excerpt = text if len(text) <= EXCERPT else f"{text[:EXCERPT].rsplit(' ', 1)[0]} …"
    there = f"{len(members)} scenarios" if len(members) > 1 else "one scenario"
    return (
        f"Stay in the neighbourhood of this kind of service ({found.names[concept]}), of which the collection has "
        f"only {there}, such as this one: {excerpt} The new ones should be other services of this kind or of kinds "
        "next to it, with records and rules of their own."
    )
