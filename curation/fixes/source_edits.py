"""Small edits of Python source, placed by its syntax tree, so that everything else stays as it was written."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceEdit:
    """The text from `start` to `end` (bytes of the UTF-8 source) becomes `text`; equal ends insert it."""

    start: int
    end: int
    text: str


class SourceText:
    """A source with the places of its nodes. Raises SyntaxError where it is not Python."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self._bytes = text.encode("utf-8", "surrogatepass")
        self._starts = [0]
        for line in self._bytes.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def start(self, node: ast.expr) -> int:
        """Where a node begins."""
        return self._starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr) -> int:
        """Where a node ends."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.end_lineno - 1] + node.end_col_offset

    def segment(self, node: ast.expr) -> str:
        """A node as it is written."""
        return self._bytes[self.start(node) : self.end(node)].decode("utf-8", "surrogatepass")

    def replace(self, node: ast.expr, text: str) -> SourceEdit:
        """The edit that writes another text in the place of a node."""
        return SourceEdit(self.start(node), self.end(node), text)

    def wrap(self, node: ast.expr, function: str) -> tuple[SourceEdit, SourceEdit]:
        """The edits that pass a node through a function."""
        start, end = self.start(node), self.end(node)
        return SourceEdit(start, start, f"{function}("), SourceEdit(end, end, ")")

    def edited(self, edits: Iterable[SourceEdit]) -> str:
        """The source with the edits made; where two insert at one place, the one given first comes first."""
        result = self._bytes
        for edit in sorted(dict.fromkeys(edits), key=lambda edit: (edit.start, edit.end), reverse=True):
            result = result[: edit.start] + edit.text.encode("utf-8", "surrogatepass") + result[edit.end :]
        return result.decode("utf-8", "surrogatepass")
