"""What can be done to a run from the board and from a stage: a question or two, then a command in the run's log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from textual import work

from pipeline.errors import UserError
from pipeline.model import STAGES
from studio import stage_record, steering
from studio.screens.ask import AskScreen
from studio.screens.choose import ChooseScreen
from studio.screens.frame import Framed
from studio.stage_record import Piece

if TYPE_CHECKING:
    from pipeline.engine.board import Row
    from studio.run_watch import RunWatch

ALL = "all"
OTHER = "other"
GATES = {"": "holds nothing", "warn": "holds what its checks warn of", "all": "holds every result"}


class Steered(Framed):
    """A screen on a run, with `bindings("steer")`. What is meant is `target`: a scenario and one of its stages."""

    @property
    def watch_of_run(self) -> RunWatch | None:
        """The run."""
        raise NotImplementedError

    @property
    def target(self) -> tuple[Row, str] | None:
        """The scenario and the stage meant."""
        raise NotImplementedError

    # One scenario

    def action_pause(self) -> None:
        """Pause the scenario, or let it go on."""
        if self.target is not None:
            row, _ = self.target
            self.tell("resume" if row.paused else "pause", row)

    def action_approve(self) -> None:
        """Let the stage go on."""
        if self.target is not None:
            row, stage = self.target
            waiting = [name for name, cell in row.cells.items() if cell.state == "waiting"]
            self.tell("approve", row, stage=stage if stage in waiting else None)

    @work
    async def action_reject(self) -> None:
        """Ask for the reason and send the result back."""
        if self.target is None:
            return
        row, stage = self.target
        piece = await self._choose_piece("Send back which part?", made=True)
        reason = piece and await self.ask_line(
            f"What is wrong with {piece.step} of {row.title}?", "The reason goes to the model."
        )
        if piece and reason:
            self.tell("reject", row, stage=stage, part=piece.part, slot=piece.slot or None, reason=reason)

    @work
    async def action_retry(self) -> None:
        """Ask for a hint and make the stage again."""
        if self.target is None:
            return
        row, stage = self.target
        title = f"Make {stage} of {row.title} again. What should be different?"
        if hint := await self.ask_line(title, "The hint goes into the prompt."):
            self.tell("retry", row, stage=stage, hint=hint)

    @work
    async def action_again(self) -> None:
        """Make the stage again: as it was asked, or from a version; or everything that failed."""
        if self.target is None:
            return
        row, stage = self.target
        ways = {
            "plain": f"{stage} of {row.title}, without a hint",
            "version": f"{stage} of {row.title}, from a version of it …",
            "failed": "everything in this run that has failed",
        }
        way = await self.studio.push_screen_wait(ChooseScreen("Make again", ways))
        if way == "plain":
            self.tell("retry", row, stage=stage)
        elif way == "failed":
            self.tell("retry")
        elif way == "version":
            await self._from_version(row, stage)

    async def _from_version(self, row: Row, stage: str) -> None:
        workspace = self.studio.workspace
        piece = await self._choose_piece("From a version of which part?", made=True)
        if piece is None or workspace is None:
            return
        versions = await self.studio.ask(workspace.catalog.versions, row.name, piece.part, piece.slot) or []
        labels = {
            str(each.number): f"{each.number}  by {each.author.name}, {each.created_at.astimezone():%m-%d %H:%M}"
            for each in reversed(versions)
        }
        number = await self.studio.push_screen_wait(ChooseScreen(f"Which version of {piece.step}?", labels))
        hint = number and await self.ask_line("What should be different from that version?", "It goes to the model.")
        if number and hint:
            given = {"part": piece.part, "slot": piece.slot or None, "version": int(number), "hint": hint}
            self.tell("retry", row, stage=stage, **given)

    @work
    async def action_edit(self) -> None:
        """Open the editor on a part of the stage."""
        from studio.screens.edit_part import EditPartScreen

        watch = self.watch_of_run
        piece = await self._choose_piece("Edit which part?")
        if piece is not None and self.target is not None and watch is not None:
            self.studio.push_screen(EditPartScreen(watch, *self.target, piece))

    @work
    async def action_drop(self) -> None:
        """Leave the scenario out of the run, after asking."""
        if self.target is None:
            return
        row, _ = self.target
        choices = {"keep": "Keep it", "drop": "Drop it: what it has stays in the catalog, nothing takes its place"}
        if await self.studio.push_screen_wait(ChooseScreen(f"Drop {row.title}?", choices)) == "drop":
            self.tell("drop", row)

    # The whole run

    def action_pause_all(self) -> None:
        """Pause the run, or let it go on; starts a process where none works on it."""
        watch = self.watch_of_run
        if watch is not None:
            self.tell("pause" if watch.board.state == "running" and self.is_worked_on() else "resume")

    @work
    async def action_approve_all(self) -> None:
        """Approve everything that waits for a decision, after asking."""
        watch = self.watch_of_run
        waiting = [cell for _, _, cell in watch.board.waiting() if not cell.fault] if watch else []
        if not waiting:
            self.notify("Nothing waits for approval.", severity="warning")
            return
        choices = {"no": "Leave them", "yes": f"Approve all {len(waiting)}"}
        title = f"{len(waiting)} results wait for approval"
        if await self.studio.push_screen_wait(ChooseScreen(title, choices)) == "yes":
            self.tell("approve")

    @work
    async def action_stop(self) -> None:
        """End the process that works on the run, after asking."""
        choices = {"no": "Let it work", "stop": "End its process; what is done stays, P goes on"}
        if self.watch_of_run and await self.studio.push_screen_wait(ChooseScreen("Stop the run?", choices)) == "stop":
            self.tell("stop")

    @work
    async def action_count(self) -> None:
        """Ask how many environments are wanted."""
        watch = self.watch_of_run
        if watch is None:
            return
        text = await self.ask_line("How many environments are wanted?", value=str(watch.board.count))
        if text and (number := self._number(text, whole=True)) is not None:
            self.tell("set", count=int(number))

    @work
    async def action_budget(self) -> None:
        """Ask for the most that may be spent."""
        watch = self.watch_of_run
        if watch is None:
            return
        now = "" if watch.board.budget is None else f"{watch.board.budget:g}"
        text = await self.ask_line("The most this run may spend, in US dollars?", value=now)
        if text and (number := self._number(text)) is not None:
            self.tell("set", budget=number)

    @work
    async def action_gate(self) -> None:
        """Choose what waits for approval."""
        watch = self.watch_of_run
        if watch is None:
            return
        gates = watch.board.gates
        labels = {stage: f"{stage:<14}{GATES[gates.get(stage, '')]}" for stage in STAGES}
        stage = await self.studio.push_screen_wait(ChooseScreen("The gate of which stage?", labels))
        kind = stage and await self.studio.push_screen_wait(
            ChooseScreen(f"The gate of {stage}", GATES, now=gates.get(stage, ""))
        )
        if stage and kind is not None:
            others = {name: held for name, held in gates.items() if name != stage}
            self.tell("set", gates=others | ({stage: kind} if kind else {}))

    @work
    async def action_model(self) -> None:
        """Choose who is asked from now on."""
        from pipeline.llm.profiles import choose

        watch = self.watch_of_run
        if watch is None:
            return
        models = {stage: profile["model"] for stage, profile in watch.board.models.items()}
        stages = {ALL: "all stages"} | {stage: f"{stage:<14}{models.get(stage, '')}" for stage in STAGES}
        stage = await self.studio.push_screen_wait(ChooseScreen("Another model for which stage?", stages))
        if stage is None:
            return
        profiles = self.studio.settings.profiles
        known = {name: f"{name}  ({profile.model})" for name, profile in profiles.items()}
        model = await self.studio.push_screen_wait(ChooseScreen("Which model?", known | {OTHER: "another one …"}))
        if model == OTHER:
            model = await self.ask_line("The model's name, as its server knows it?")
        if model:
            profile = await self.studio.ask(choose, profiles, None, model=model)
            if profile is not None:
                document = profile.model_dump(mode="json")
                self.tell("set", models=dict.fromkeys(STAGES if stage == ALL else (stage,), document))

    # How it is asked and told

    def is_worked_on(self) -> bool:
        """Whether a process works on the run."""
        from pipeline.engine.start import is_worked_on

        watch, workspace = self.watch_of_run, self.studio.workspace
        return watch is not None and workspace is not None and is_worked_on(workspace, watch.run.id)

    @work(group="tell")
    async def tell(self, do: str, row: Row | None = None, **data: Any) -> None:
        """Send a command and say what came of it."""
        await self.told(do, row, data)

    async def told(self, do: str, row: Row | None, data: Mapping[str, Any]) -> bool:
        """Send a command, say what came of it; whether it was not refused."""
        watch, workspace = self.watch_of_run, self.studio.workspace
        if watch is None or workspace is None:
            return False
        name = row.name if row is not None else None
        told = await self.studio.ask(steering.tell, workspace, watch.run.id, do, scenario=name, data=data)
        if told is None:
            return False
        severity = "error" if told.ok is False else "warning" if told.ok is None else "information"
        self.notify(told.said, severity=severity, timeout=12 if told.ok is False else 5, markup=False)
        return told.ok is not False

    async def ask_line(self, title: str, hint: str = "", *, value: str = "") -> str | None:
        """Ask for a line of text."""
        return await self.studio.push_screen_wait(AskScreen(title, hint, value=value))

    async def _choose_piece(self, title: str, *, made: bool = False) -> Piece | None:
        """The part of the target's stage that is meant, asked for where there are several."""
        workspace = self.studio.workspace
        if self.target is None or workspace is None:
            return None
        row, stage = self.target
        found = await self.studio.ask(stage_record.pieces, workspace, row, stage) or []
        there = [piece for piece in found if piece.version is not None] if made else found
        if not there:
            self.notify(f"Nothing has been made for {stage} of {row.title} yet.", severity="warning", markup=False)
            return None
        if len(there) == 1:
            return there[0]
        labels = {piece.step: f"{piece.step}{'' if piece.version else '  (not made yet)'}" for piece in there}
        chosen = await self.studio.push_screen_wait(ChooseScreen(title, labels))
        return next((piece for piece in there if piece.step == chosen), None)

    def _number(self, text: str, *, whole: bool = False) -> float | None:
        try:
            number = float(int(text)) if whole else float(text)
            if not whole <= number < float("inf"):
                raise UserError
        except (ValueError, UserError):
            least = "a whole number from 1" if whole else "a number from 0"
            self.notify(f"{text!r} is not {least}.", severity="error", markup=False)
            return None
        return number
