"""How rollouts go: what the agent sees, what counts as a slip, and when a rollout ends."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from train.protocol import NATIVE_SYSTEM, SYSTEM, Form


class Rules(BaseModel):
    """The rules of a rollout. The defaults are those of AWM's training (arXiv 2602.10090, section 4 and table 8)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    form: Form = Form.text
    """AWM's text protocol, or the tool calling of the model's server."""
    window: int | None = Field(default=3, ge=0)
    """How many of the last exchanges the agent sees, beside the first; None: all. (Table 8: 3; in evaluation 10.)"""
    max_turns: int = Field(default=20, ge=1)
    """Turns an agent has (table 8: 20)."""
    max_context: int | None = Field(default=None, ge=1)
    """Tokens a turn may have, what is shown and what is said together (table 8: 32,000); None: what the model takes."""
    time_limit_s: float | None = Field(default=600.0, gt=0)
    """Seconds a rollout may take; None: as long as it needs."""
    require_thinking: bool = False
    """Whether a turn that does not think first is a slip; AWM's training of thinking models requires it."""
    stop_on_slip: bool = True
    """Whether the first slip ends the rollout, as in training; else the agent is told what was wrong and goes on."""
    stop_on_fault: bool = True
    """Whether a server error or timeout of the environment ends the rollout, as in training."""
    listing: Literal["full", "short"] = "full"
    """What list_tools shows: upstream's text, or one line a tool for models with little context."""
    results_as: Literal["tool", "user"] = "tool"
    """The role of results in the text protocol: upstream uses `user` for servers that insist on native calls."""
    system: str | None = None
    """The system prompt; None: the one of the protocol."""

    @property
    def system_prompt(self) -> str:
        """The system prompt that is used."""
        if self.system is not None:
            return self.system
        return NATIVE_SYSTEM if self.form is Form.native else SYSTEM

    @property
    def pinned(self) -> int:
        """How many exchanges are kept at the start: the one that lists the tools, where there is one."""
        return 1 if self.form is Form.text else 0
