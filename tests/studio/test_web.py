"""`awm-studio --web`: the studio in a browser of this machine, and of nobody else."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

LIMIT_S = 60


@pytest.fixture(scope="module")
def address(small_world: Path) -> Iterator[str]:
    """A served studio; at the end Ctrl-C stops it."""
    command = [sys.executable, "-m", "studio.cli", "--workspace", str(small_world), "--web"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = process.stderr.readline()
    assert "no password" in said
    found = re.search(r"http://127\.0\.0\.1:\d+", said)
    assert found is not None, said
    yield found[0]
    process.send_signal(signal.SIGINT)
    assert process.wait(LIMIT_S) == 0


async def test_a_browser_gets_the_page_and_a_studio_of_its_own(address: str) -> None:
    async with aiohttp.ClientSession() as session:
        page = await (await session.get(address)).text()
        assert "awm-studio" in page
        async with session.ws_connect(f"{address}/ws?width=100&height=30", headers={"Origin": address}) as socket:
            shown = b""
            while b"Airline" not in re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", shown):
                message = await asyncio.wait_for(socket.receive(), LIMIT_S)
                assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT), message
                shown += message.data if isinstance(message.data, bytes) else message.data.encode()


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://example.com"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1.example.com"},
        {},
        {"Origin": "http://127.0.0.1", "Host": "rebound.example.com"},
    ],
)
async def test_pages_that_we_did_not_serve_cannot_steer_a_studio(address: str, headers: dict[str, str]) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(f"{address}/ws", headers=headers)
        assert refused.value.status == 403


async def test_a_port_that_is_taken_is_told(address: str, small_world: Path) -> None:
    port = address.rpartition(":")[2]
    command = [sys.executable, "-m", "studio.cli", "--workspace", str(small_world), "--web", "--port", port]
    process = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert process.returncode == 2
    assert f"port {port} is taken" in process.stderr
