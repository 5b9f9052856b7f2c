"""Screens that show what the workspace holds, and read it again when something was written to it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from textual import work

from studio.bridge import News
from studio.screens.frame import Framed

if TYPE_CHECKING:
    from pipeline.workspace import Workspace

RELOAD_S = 1.0
"""What is shown is read again at most this often while something writes to the catalog."""
RELOAD_SHARE = 0.1
"""The share of the time that reading may take; what takes long is read less often."""


class Following(Framed):
    """Reads as soon as there is a workspace, and again soon after something was written."""

    def __init__(self) -> None:
        super().__init__()
        self._wanted = False
        self._took = 0.0

    async def read(self, workspace: Workspace) -> None:
        """Read what is shown, and show it; cursor, marks and filters stay."""
        raise NotImplementedError

    def heard(self, news: News) -> None:
        """Show at once what needs no reading, such as how far a run is."""

    def on_mount(self) -> None:
        """Follow the workspace."""
        super().on_mount()
        self.studio.opened.subscribe(self, self._workspace_opened)
        self.studio.news.subscribe(self, self._heard)
        self.reload()

    def _workspace_opened(self, _workspace: Workspace) -> None:
        self.reload()

    def _heard(self, news: News) -> None:
        self.heard(news)
        if not self._wanted:
            self._wanted = True
            self.set_timer(max(RELOAD_S, self._took / RELOAD_SHARE), self.reload)

    @work(exclusive=True, group="reload")
    async def reload(self) -> None:
        """Read now."""
        self._wanted = False
        if self.studio.workspace is not None:
            began = time.monotonic()
            await self.read(self.studio.workspace)
            self._took = time.monotonic() - began
