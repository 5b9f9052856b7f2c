"""Where pages are opened."""

from __future__ import annotations

from studio.browser import has_browser, tunnel_command


def test_the_tunnel_is_named_only_over_ssh() -> None:
    assert tunnel_command(8001, {}) is None
    line = tunnel_command(8001, {"SSH_CONNECTION": "10.0.0.5 50022 192.0.2.7 22"})
    assert line is not None
    assert line.startswith("ssh -N -L 8001:127.0.0.1:8001 ")
    assert line.endswith("@192.0.2.7")
    other = tunnel_command(8001, {"SSH_CONNECTION": "10.0.0.5 50022 192.0.2.7 2222"})
    assert other is not None
    assert "-p 2222" in other


def test_a_page_is_not_opened_behind_ssh() -> None:
    assert has_browser({"DISPLAY": ":0"})
    assert not has_browser({"DISPLAY": "localhost:10", "SSH_CONNECTION": "10.0.0.5 50022 192.0.2.7 22"})
