"""States as a glyph and a word; never as a colour alone."""

from __future__ import annotations

from studio.widgets.lines import Piece

GLYPHS: dict[str | None, Piece] = {
    None: ("·", "muted"),
    "queued": ("· queued", "muted"),
    "running": ("▶ running", "accent"),
    "correcting": ("↻ correcting", "warn"),
    "waiting": ("? waits for you", "warn"),
    "paused": ("‖ paused", "muted"),
    "done": ("✓ done", "ok"),
    "failed": ("✗ failed", "fail"),
    "stopped": ("‖ stopped", "muted"),
    "interrupted": ("‖ interrupted", "warn"),
    "deleted": ("· deleted", "muted"),
    "stale": ("~ stale", "muted"),
    "pass": ("✓ pass", "ok"),
    "warn": ("! warn", "warn"),
    "fail": ("✗ fail", "fail"),
    "waived": ("~ waived", "muted"),
    "trusted": ("✓ trusted", "ok"),
    "loose": ("! loose", "warn"),
    "strict": ("! strict", "warn"),
    "broken": ("✗ broken", "fail"),
    "unproven": ("· unproven", "muted"),
    "not run": ("✗ not run", "warn"),
    "ready": ("✓ ready", "ok"),
    "incomplete": ("! incomplete", "warn"),
    "not installed": ("· not installed", "muted"),
    "unavailable": ("✗ unavailable", "warn"),
    "error": ("✗ error", "fail"),
    "info": ("i info", "muted"),
}
"""Each word the catalog uses for a state, as it is shown."""


def state(word: str | None) -> Piece:
    """A state as text and tone; a word that is not known is shown as it is."""
    return GLYPHS.get(word, (str(word), ""))
