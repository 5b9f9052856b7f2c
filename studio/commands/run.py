"""`awm-studio run`: watch and steer long work, whatever process it runs in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from pipeline.errors import UserError
from studio.commands.options import Finite, json_option, open_workspace, print_json, print_table, say, workspace_option

if TYPE_CHECKING:
    from pipeline.engine.board import Board, Row
    from pipeline.records import Run
    from pipeline.workspace import Workspace

SCENARIO = click.argument("scenario", required=False)
ONE_SCENARIO = click.argument("scenario")
RUN = click.argument("number", metavar="RUN", type=int)
STAGE = click.option("--stage", help="The stage meant [default: the one the scenario is at].")
PART = click.option("--part", help="The part of the stage: schema or sample, spec or code.")
SLOT = click.option("--slot", metavar="TASK/MODE", help="The verifier meant, for example 3/code.")


@click.group()
def run_command() -> None:
    """Watch and steer a synthesis: what the board of the studio does, from the command line.

    RUN is a run's number, SCENARIO a scenario's number, name, title or the beginning of its name. Commands are
    written into the run's log, and whichever process works on it carries them out.

    Examples:

        awm-studio run list

        awm-studio run show 3 "museum loans"

        awm-studio run approve 3 12

        awm-studio run retry 3 12 --stage database --hint "add a currency column"
    """


@run_command.command("list")
@json_option
@workspace_option
def list_runs(as_json: bool, workspace: str | None) -> None:
    """All runs of the workspace, newest first."""
    with open_workspace(workspace) as opened:
        rows = [_listed(opened, run) for run in opened.catalog.runs()]
    if as_json:
        print_json({"runs": rows})
    else:
        columns = ["run", "kind", "state", "count", "done", "failed", "waiting", "spent_usd", "created_at"]
        print_table(columns, ([row.get(column) for column in columns] for row in rows))


@run_command.command("show")
@click.argument("number", metavar="[RUN]", type=int, required=False)
@SCENARIO
@click.argument("stage", required=False)
@click.option("--prompt", is_flag=True, help="With a stage: the prompt of the last attempt.")
@click.option("--text", is_flag=True, help="With a stage: what the model is writing now, or wrote last.")
@json_option
@workspace_option
def show(
    *,
    number: int | None,
    scenario: str | None,
    stage: str | None,
    prompt: bool,
    text: bool,
    as_json: bool,
    workspace: str | None,
) -> None:
    """The board of a run; one scenario's stages; or one stage's attempts, with what the checks found."""
    from pipeline.engine import report
    from pipeline.engine.commands import find_row, find_run, one_stage
    from studio import stage_record

    with open_workspace(workspace) as opened:
        run = find_run(opened.catalog, number)
        board = _board(opened, run)
        if scenario is None:
            document = {"run": run.id, "alive": _is_alive(opened, run), **report.board_document(board)}
            print_json(document) if as_json else _print_board(board, document)
            return
        row = find_row(board, scenario)
        if stage is None:
            print_json({"run": run.id, **report.row_document(row)}) if as_json else _print_row(row)
            return
        stage = one_stage(row, stage)
        if prompt or text:
            click.echo(stage_record.prompt(opened, row, stage) if prompt else _live_text(opened, run, row, stage))
            return
        steps = report.steps_document(row.cells[stage])
        print_json({"run": run.id, "scenario": row.name, "stage": stage, "steps": steps}) if as_json else _print_steps(
            steps
        )


@run_command.command("pause")
@RUN
@SCENARIO
@json_option
@workspace_option
def pause(number: int, scenario: str | None, as_json: bool, workspace: str | None) -> None:
    """Ask nothing more, of one scenario or of all, until resumed."""
    tell(number, scenario, "pause", as_json=as_json, workspace=workspace)


@run_command.command("drop")
@RUN
@ONE_SCENARIO
@json_option
@workspace_option
def drop(number: int, scenario: str, as_json: bool, workspace: str | None) -> None:
    """Leave a scenario out; what it has stays in the catalog."""
    tell(number, scenario, "drop", as_json=as_json, workspace=workspace)


@run_command.command("stop")
@RUN
@json_option
@workspace_option
def stop(number: int, as_json: bool, workspace: str | None) -> None:
    """End the process that works on a run; everything that is done stays, and resume goes on."""
    tell(number, None, "stop", as_json=as_json, workspace=workspace)


@run_command.command("resume")
@RUN
@SCENARIO
@json_option
@workspace_option
def resume(number: int, scenario: str | None, as_json: bool, workspace: str | None) -> None:
    """Go on, and try again what waits for a server; starts a process where none works on the run."""
    tell(number, scenario, "resume", as_json=as_json, workspace=workspace)


@run_command.command("approve")
@RUN
@SCENARIO
@STAGE
@json_option
@workspace_option
def approve(number: int, scenario: str | None, stage: str | None, as_json: bool, workspace: str | None) -> None:
    """Let what waits for a decision go on: one scenario's, all of a stage's, or everything."""
    tell(number, scenario, "approve", {"stage": stage}, as_json=as_json, workspace=workspace)


@run_command.command("reject")
@RUN
@ONE_SCENARIO
@click.option("--reason", required=True, help="What is wrong; it goes to the model.")
@STAGE
@PART
@SLOT
@json_option
@workspace_option
def reject(number: int, scenario: str, as_json: bool, workspace: str | None, **data: str | None) -> None:
    """Send a stage's result back; a rejected scenario is replaced by another one."""
    tell(number, scenario, "reject", data, as_json=as_json, workspace=workspace)


@run_command.command("retry")
@RUN
@SCENARIO
@STAGE
@PART
@SLOT
@click.option("--hint", help="What to do differently; it goes into the prompt.")
@click.option(
    "--from", "version", type=click.IntRange(1), metavar="VERSION", help="Start from this version of the part."
)
@json_option
@workspace_option
def retry(number: int, scenario: str | None, as_json: bool, workspace: str | None, **data: Any) -> None:
    """Make a stage of a scenario again; without a scenario, everything that failed."""
    tell(number, scenario, "retry", data, as_json=as_json, workspace=workspace)


@run_command.command("edit")
@RUN
@ONE_SCENARIO
@click.argument("stage")
@PART
@SLOT
@click.option(
    "--file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="The new content [default: $EDITOR]."
)
@click.option("--keep", is_flag=True, help="Keep what depends on it where its checks still pass.")
@json_option
@workspace_option
def edit(
    *,
    number: int,
    scenario: str,
    stage: str,
    part: str | None,
    slot: str | None,
    file: Path | None,
    keep: bool,
    as_json: bool,
    workspace: str | None,
) -> None:
    """Put your own content in place of a model's: it is checked like one, and what depends on it is made again."""
    from pipeline.engine.commands import find_row, one_stage
    from pipeline.model import STAGES

    with open_workspace(workspace) as opened:
        run = _synthesis(opened, number)
        row = find_row(_board(opened, run), scenario)
        parts = STAGES[one_stage(row, stage)]
        if part is None and len(parts) > 1:
            raise UserError(f"Say which part of the {stage} stage: --part {' or --part '.join(parts)}.")
        content = file.read_text("utf-8-sig") if file else _edited(opened, row, stage, part or parts[0], slot or "")
    data = {"stage": stage, "part": part or parts[0], "slot": slot, "content": content, "keep": keep}
    tell(number, row.name, "edit", data, as_json=as_json, workspace=workspace)


@run_command.command("set")
@RUN
@click.option("--count", type=click.IntRange(1), help="How many environments are wanted.")
@click.option("--budget", type=Finite(0), metavar="USD", help="The most that may be spent.")
@click.option(
    "--gate", "gates", multiple=True, metavar="STAGE[:warn]", help="Hold these stages' results, and no others."
)
@click.option("--no-gates", is_flag=True, help="Hold nothing any more.")
@click.option("--model", help="A model's name, or a profile's, for --stage or for all stages.")
@click.option("--base-url", help="The server for that model.")
@click.option("--stage", "stages", multiple=True, help="The stages the model is for. Repeatable.")
@json_option
@workspace_option
def set_run(
    *,
    number: int,
    count: int | None,
    budget: float | None,
    gates: tuple[str, ...],
    no_gates: bool,
    model: str | None,
    base_url: str | None,
    stages: tuple[str, ...],
    as_json: bool,
    workspace: str | None,
) -> None:
    """Change a run while it works: its count, budget, gates, or the model of a stage."""
    from pipeline.llm.profiles import choose
    from pipeline.model import STAGES
    from studio.synthesis import read_gates

    data: dict[str, Any] = {}
    if count is not None:
        data["count"] = count
    if budget is not None:
        data["budget"] = budget
    if gates or no_gates:
        data["gates"] = read_gates(gates)
    if model or base_url:
        if unknown := set(stages) - set(STAGES):
            raise UserError(f"There is no stage {', '.join(sorted(unknown))}: they are {', '.join(STAGES)}.")
        with open_workspace(workspace) as opened:
            profile = choose(opened.settings.profiles, None, model=model, base_url=base_url)
        data["models"] = {stage: profile.model_dump(mode="json") for stage in stages or STAGES}
    tell(number, None, "set", data, as_json=as_json, workspace=workspace)


def tell(
    number: int,
    scenario: str | None,
    do: str,
    data: dict[str, Any] | None = None,
    *,
    as_json: bool,
    workspace: str | None,
) -> None:
    """Send a command to a run and say what came of it. Raises UserError where the engine refuses it."""
    from pipeline.engine.commands import find_row
    from studio import steering

    with open_workspace(workspace) as opened:
        run = _synthesis(opened, number)
        name = find_row(_board(opened, run), scenario).name if scenario else None
        told = steering.tell(opened, run.id, do, scenario=name, data=data)
    if told.pid is not None:
        print_json({"run": run.id, "ok": True, "pid": told.pid}) if as_json else say(told.said)
        return
    if as_json:
        print_json({"run": run.id, "command": told.command, "ok": told.ok, "said": told.said})
    elif told.ok is not False:
        say(told.said)
    if told.ok is False:
        raise UserError(told.said)


def _synthesis(opened: Workspace, number: int) -> Run:
    from pipeline.engine.commands import find_run

    return find_run(opened.catalog, number)


def _board(opened: Workspace, run: Run) -> Board:
    from pipeline.engine.board import read

    return read(opened.catalog, run.id)


def _is_alive(opened: Workspace, run: Run) -> bool:
    from pipeline.engine.lock import worker

    return worker(opened.runs / str(run.id)) is not None


def _listed(opened: Workspace, run: Run) -> dict[str, Any]:
    from pipeline.engine.board import State
    from pipeline.engine.config import KIND

    row: dict[str, Any] = {"run": run.id, "kind": run.kind, "state": run.state, "created_at": run.created_at}
    if run.kind != KIND:
        return row
    board = _board(opened, run)
    counts = board.counts()
    left = run.state == "running" and not _is_alive(opened, run)  # killed before it could say so
    return row | {
        "state": "interrupted" if left else run.state,
        "count": board.count,
        "done": counts[State.done],
        "failed": counts[State.failed],
        "waiting": counts[State.waiting],
        "spent_usd": round(board.spent, 4),
    }


def _print_board(board: Board, document: dict[str, Any]) -> None:
    from pipeline.engine.board import GLYPHS
    from pipeline.model import STAGES

    say(f"run {document['run']}: {board.state}{': ' + board.why if board.why else ''}")
    print_table(
        ["", "scenario", *STAGES, "tokens", "usd", "why"],
        (
            [row.number, row.title, *(GLYPHS[cell.state] for cell in row.cells.values()), row.tokens, row.usd,
             row.cells[row.stage].why]
            for row in board.wanted
        ),
    )  # fmt: skip


def _print_row(row: Row) -> None:
    say(f"{row.number} {row.title} [{row.category}]: {row.description}")
    print_table(
        ["stage", "state", "attempts", "tokens", "usd", "seconds", "why"],
        (
            [stage, cell.state, cell.tries, cell.tokens, cell.usd, round(cell.seconds, 1), cell.why]
            for stage, cell in row.cells.items()
        ),
    )


def _print_steps(steps: list[dict[str, Any]]) -> None:
    rows = []
    for step in steps:
        for attempt in step["attempts"]:
            findings = attempt["findings"] or [{"severity": "", "code": "", "where": "", "message": ""}]
            for finding in findings:
                sign = "✓" if attempt["right"] else "✗"
                told = (finding[key] for key in ("severity", "code", "where", "message"))
                rows.append([step["step"], attempt["number"], sign, *told])
    print_table(["step", "attempt", "", "severity", "code", "where", "what"], rows)


def _live_text(opened: Workspace, run: Run, row: Row, stage: str) -> str:
    from studio.stage_record import live_file

    file = live_file(opened, run.id, row, stage)
    if file is None:
        raise UserError(f"Nothing has been written for the {stage} stage of {row.title} yet.")
    return file.read_text("utf-8", "replace")


def _edited(opened: Workspace, row: Row, stage: str, part: str, slot: str) -> str:
    """What a person makes of the present content in their editor, or of the last attempt where none was right."""
    import json

    from pipeline.model import Part
    from pipeline.parts import SOURCE_PARTS
    from studio.stage_record import present

    source = Part(part) in SOURCE_PARTS
    content = present(opened, row, stage, part, slot)
    shown = content if source else json.dumps(json.loads(content or "null"), indent=2, ensure_ascii=False)
    changed = click.edit(shown, extension=".py" if source else ".json")
    if changed is None or changed == shown:
        raise UserError("Nothing was changed.")
    return changed
