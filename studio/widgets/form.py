"""A form for a tool's arguments, made from its schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.containers import VerticalGroup, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.suggester import SuggestFromList
from textual.widgets import Input, Select, Static

from studio.candidates import Candidate
from studio.schema_fields import MISSING, Field, read_value, written
from studio.widgets.cells import one_line

HINTED = 4
"""How many candidates an empty field names."""


class FieldRow(VerticalGroup):
    """One argument: its name and type, where to fill it in, and what is wrong with what is there."""

    def __init__(self, field: Field, candidates: Sequence[Candidate]) -> None:
        super().__init__()
        self.field = field
        self.candidates = candidates
        self._choices = list(dict.fromkeys(written(field, choice) for choice in field.choices or (True, False)))

    def compose(self) -> ComposeResult:
        """Label, editor, problem."""
        field = self.field
        yield Static(
            Content.assemble(
                (field.name, "bold"),
                (" *" if field.required else "", "bold $text-accent"),
                (f"  {field.says}", "$quiet"),
                (f"  {one_line(field.description)}" if field.description else "", ""),
            ),
            classes="field-label",
        )
        if field.kind == "boolean" or field.choices:
            yield Select([(text, text) for text in self._choices], prompt="not given", compact=True)
        else:
            yield Input(
                placeholder=self._hint(),
                suggester=SuggestFromList([candidate.text for candidate in self.candidates], case_sensitive=False),
                compact=True,
            )
        yield Static("", classes="field-problem", markup=False)

    @property
    def editor(self) -> Input | Select[str]:
        """Where the value is filled in."""
        found = self.query(Input)
        return found.first() if found else self.query_one(Select)

    @property
    def text(self) -> str:
        """What is filled in, as typed; empty where nothing is."""
        value = self.editor.value
        return value if isinstance(value, str) else ""

    @text.setter
    def text(self, text: str) -> None:
        editor = self.editor
        if isinstance(editor, Input) or text in self._choices:
            editor.value = text

    def complain(self, problem: str) -> None:
        """Say what is wrong ("" for nothing)."""
        shown = self.query_one(".field-problem", Static)
        shown.update(f"✗ {problem}" if problem else "")
        shown.display = bool(problem)

    def _hint(self) -> str:
        if self.field.default is not MISSING and self.field.default is not None:
            return f"default {written(self.field, self.field.default)}"
        named = [f"{known.text} {known.label}".strip() for known in self.candidates[:HINTED]]
        return " · ".join(named) + (" …" if len(self.candidates) > HINTED else "")


class ArgumentForm(VerticalScroll):
    """The arguments of one tool. Enter in a field sends the form."""

    class Sent(Message):
        """A person wants the call made."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id, can_focus=False)
        self._values: Mapping[str, Any] = {}

    async def show(
        self, fields: Sequence[Field], candidates: Mapping[str, Sequence[Candidate]], values: Mapping[str, Any]
    ) -> None:
        """Ask for these arguments; `values` are filled in."""
        await self.remove_children()
        rows = [FieldRow(field, candidates.get(field.name, ())) for field in fields]
        await self.mount_all(rows or [Static("This tool takes no arguments.", classes="hint")])
        for row in rows:
            if row.field.name in values:
                row.text = written(row.field, values[row.field.name])

    @property
    def rows(self) -> list[FieldRow]:
        """The arguments, in order."""
        return list(self.query(FieldRow))

    @property
    def current(self) -> FieldRow | None:
        """The argument that has the keyboard."""
        return next((row for row in self.rows if row.has_focus_within), None)

    def read(self) -> dict[str, Any] | None:
        """The arguments filled in, or None after saying at each wrong one what is wrong with it."""
        values: dict[str, Any] = {}
        wrong: list[FieldRow] = []
        for row in self.rows:
            problem = ""
            try:
                if row.text:
                    values[row.field.name] = read_value(row.field, row.text)
                elif row.field.required:
                    problem = f"{row.field.name} is needed" + (
                        ' ("" is empty text).' if row.field.kind == "string" else "."
                    )
            except ValueError as error:
                problem = str(error)
            row.complain(problem)
            if problem:
                wrong.append(row)
        if wrong:
            wrong[0].editor.focus()
            return None
        return values

    @on(Input.Submitted)
    def _send(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Sent())
