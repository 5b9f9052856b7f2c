"""Its evaluation of calls as Python."""

from __future__ import annotations

from typing import Any


class Files:
    def __init__(self) -> None:
        self.made: list[str] = []

    def mkdir(self, name: str) -> str:
        self.made.append(name)
        return f"made {name}"

    def _secret(self) -> str:
        return "secret"


agent_files_instance = Files()


def execute(call: str) -> Any:
    return eval(call)
