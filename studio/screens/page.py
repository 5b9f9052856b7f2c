"""Where to find a page of this machine when there is no browser here."""

from __future__ import annotations

from urllib.parse import urlsplit

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Footer, Static

from studio.actions import bindings
from studio.browser import tunnel_command


class PageScreen(ModalScreen[None]):
    """Shows a URL and, over SSH, the line that makes it reachable from the other end."""

    BINDINGS = bindings("page")

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._tunnel = tunnel_command(urlsplit(url).port or 80)

    def compose(self) -> ComposeResult:
        """What to type, where."""
        with Vertical(classes="dialog"):
            yield Static("Open in a browser", classes="title")
            if self._tunnel:
                yield Static("First, on your own machine:", classes="hint")
                yield Static(self._tunnel, markup=False)
                yield Static("then open there:", classes="hint")
            else:
                yield Static("There is no browser on this machine's desktop. Open here:", classes="hint")
            yield Static(self._url, markup=False)
            yield Static("It is served until the studio is left.", classes="hint")
        yield Footer(compact=True, show_command_palette=False)

    def action_copy(self) -> None:
        """Copy the URL."""
        self.app.copy_to_clipboard(self._url)
        self.notify("Copied the address.", timeout=2)

    def action_copy_tunnel(self) -> None:
        """Copy the ssh line."""
        if self._tunnel:
            self.app.copy_to_clipboard(self._tunnel)
            self.notify("Copied the ssh line.", timeout=2)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The ssh line can only be copied where there is one."""
        return action != "copy_tunnel" or self._tunnel is not None

    def action_close(self) -> None:
        """Back to the screen below."""
        self.dismiss()
