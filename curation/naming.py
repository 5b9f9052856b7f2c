"""Names of concepts by a model, where one is set: a person reads “ride hailing” quicker than “driver, trip, fare”."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from curation.diversity import Diversity
from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.llm.profiles import Profile
    from pipeline.llm.replies import Replies

EXAMPLES = 3
"""Environments of a concept that the model is shown."""
EXCERPT = 600
"""Characters of each that it is shown."""
LONGEST = 40
"""Characters a name may have."""
QUESTION = (
    "These descriptions are of services of one kind. Name the kind in two to four plain words, like “ride hailing” or "
    "“library lending”. Answer with the name alone.\n\n"
)


def named_by_model(measured: Diversity, profile: Profile, replies: Replies) -> Diversity:
    """The measurement with its concepts named by a model, no two alike; what it was asked before is not asked again.

    A concept that the model gives no usable name keeps the one from its own words. Raises UserError where the model
    cannot be asked.
    """
    from pipeline.llm.faults import ModelFault

    members = {label: [] for label in range(measured.concepts)}
    for item, label in zip(measured.items, measured.labels, strict=True):
        members[label].append(item.text)
    try:
        said = asyncio.run(_ask([texts[:EXAMPLES] for texts in members.values()], profile, replies))
    except ModelFault as fault:
        raise UserError(f"The concepts cannot be named: {fault}") from fault
    names: list[str] = []
    for own, answer in zip(measured.names, said, strict=True):
        lines = answer.strip(" \n\"'“”.*").splitlines()
        name = lines[0].strip().lower() if len(lines) == 1 and len(lines[0]) <= LONGEST else own
        names.append(own if name in names else name)
    return replace(measured, names=tuple(names))


async def _ask(concepts: Sequence[Sequence[str]], profile: Profile, replies: Replies) -> list[str]:
    from pipeline.llm.client import Client
    from pipeline.llm.request import Message, Request

    client = Client(replies)
    try:
        shown = ["\n\n".join(f"- {' '.join(text.split())[:EXCERPT]}" for text in texts) for texts in concepts]
        asked = (client.ask(Request((Message("user", QUESTION + excerpts),)), profile) for excerpts in shown)
        return [reply.text for reply in await asyncio.gather(*asked)]
    finally:
        await client.close()
