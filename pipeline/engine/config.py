"""What a run is asked to do, as it is kept with the run."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from pipeline.llm.profiles import Profile
from pipeline.model import DEFAULT_NOW
from pipeline.stages.step import ATTEMPTS

KIND = "synthesis"
"""The kind of the runs this package makes."""

Stage = Literal["scenario", "tasks", "database", "interface", "verification"]
Gate = Literal["all", "warn"]
"""Which results of a stage wait for a person: every one, or only those whose checks found something."""


class Config(BaseModel):
    """The settings of a run when it was started; what was changed later is in its events."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    count: int = Field(ge=1)
    """Scenarios wanted."""
    models: dict[Stage, Profile]
    """Who is asked, by stage."""
    gates: dict[Stage, Gate] = {}
    budget: float | None = Field(default=None, ge=0)
    """The most that may be spent, in US dollars; None: no limit."""
    seed: int = 0
    """Chooses the examples that stage 1 shows; with the same seed, replies and settings a run repeats itself."""
    attempts: int = Field(default=ATTEMPTS, ge=1)
    """Attempts a step."""
    now: datetime = DEFAULT_NOW
    """The pinned time of the environments made."""
    nearness: Literal["model", "endpoint", "ngrams"] = "ngrams"
    """How scenarios are compared: by a sentence embedding model here, by an endpoint, by character n-grams."""
    hint: str = ""
    """What a person tells stage 1 to make: it goes into every request for new scenarios."""
    replay: bool = False
    """Answer from the kept replies only."""
