"""`awm-studio trajectory`: look at rollouts, do them again, score them again, exchange them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from studio.commands.options import json_option, open_workspace, print_json, print_table, say, visible, workspace_option

if TYPE_CHECKING:
    from train.replay import Replay
    from train.trajectory import Trajectory

FILE = click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
NUMBER = click.option("--number", type=click.IntRange(0), metavar="N", help="The rollout, where there are several.")

SHOWN_LINES = 12
"""Lines of a result that are printed; --json has all."""


@click.group()
def trajectory_command() -> None:
    """Look at recorded rollouts, do them again, score them again, exchange them with AWM's own agent.

    FILE is a run's number or folder, its trajectories.jsonl, or a folder with trajectory.json files in AWM's layout.

    Examples:

        awm-studio trajectory show 12

        awm-studio trajectory show 12 --number 3

        awm-studio trajectory replay 12

        awm-studio trajectory export 12 outputs/mine
    """


@trajectory_command.command("show")
@FILE
@NUMBER
@json_option
@workspace_option
def show(*, file: Path, number: int | None, as_json: bool, workspace: str | None) -> None:
    """Step through a rollout, with what every call changed; or list the rollouts there are.

    The changes are found by doing the calls again; where that is not possible, those of the whole rollout are shown.

    Examples:

        awm-studio trajectory show 12 --number 3

        awm-studio trajectory show outputs/runs/airline_0_0
    """
    from train.files import one, recorded
    from train.replay import replays

    with open_workspace(workspace) as opened:
        if number is None:
            found = list(recorded(file, opened.runs))
            if len(found) != 1:
                _list([each.trajectory for each in found], as_json=as_json)
                return
        chosen = one(file, opened.runs, number).trajectory
        ((_, done_again),) = replays(opened, [chosen])
    again, why = (None, done_again) if isinstance(done_again, str) else (done_again, "")
    if as_json:
        print_json(_document(chosen, again))
    else:
        _print(chosen, again, why)


@trajectory_command.command("replay")
@FILE
@NUMBER
@json_option
@workspace_option
def replay(*, file: Path, number: int | None, as_json: bool, workspace: str | None) -> None:
    """Do rollouts' calls again and compare every result and both databases, byte for byte.

    Exits with 1 where something differs, or an environment does not load.

    Examples:

        awm-studio trajectory replay 12
    """
    from train.files import one, recorded
    from train.replay import replays

    with open_workspace(workspace) as opened:
        found = [one(file, opened.runs, number)] if number is not None else list(recorded(file, opened.runs))
        rows = [_comparison(trajectory, again) for trajectory, again in replays(opened, (r.trajectory for r in found))]
    same = sum(row["same"] for row in rows)
    if as_json:
        print_json({"rollouts": len(rows), "same": same, "differ": len(rows) - same, "replays": rows})
    else:
        differing = [row for row in rows if not row["same"]]
        print_table(["rollout", "what differs"], ((row["key"], row["why"]) for row in differing)) if differing else None
        say(f"{same} of {len(rows)} rollouts give the same bytes again.")
    if same < len(rows):
        sys.exit(1)


@trajectory_command.command("score")
@FILE
@click.option("--no-op-pays", is_flag=True, help="An untouched database may count as done in part.")
@json_option
@workspace_option
def score(*, file: Path, no_op_pays: bool, as_json: bool, workspace: str | None) -> None:
    """Score rollouts again, with the code verifiers that the environments have now. The records stay as they are.

    Trainings keep no databases: the calls are then done again, and must come to what the record says.

    Examples:

        awm-studio trajectory score 12

        awm-studio trajectory score 12 --no-op-pays --json
    """
    from train.files import recorded
    from train.reward import Rewards
    from train.rollout_run import tally
    from train.scoring import scored_again

    with open_workspace(workspace) as opened:
        found = list(recorded(file, opened.runs))
        scored = list(scored_again(opened, found, Rewards(no_op_pays=no_op_pays)))
    figures = tally(trajectory for trajectory, _ in scored).document()
    changed = [
        {"key": now.key, "before": _outcome(before), "now": _outcome(now)}
        for now, before in scored
        if _outcome(now) != _outcome(before)
    ]
    if as_json:
        print_json({**figures, "changed": changed})
    else:
        print_table(["rollout", "was", "is"], ((row["key"], row["before"], row["now"]) for row in changed))
        say(f"{figures['complete']} of {figures['rollouts']} complete; {len(changed)} are scored differently now.")


@trajectory_command.command("export")
@FILE
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))
@json_option
@workspace_option
def export(*, file: Path, folder: Path, as_json: bool, workspace: str | None) -> None:
    """Write a run's rollouts in the layout of AWM's own agent, into a new folder.

    Examples:

        awm-studio trajectory export 12 outputs/mine
    """
    from pipeline.errors import UserError
    from train.awm_runs import export_awm
    from train.files import recorded

    with open_workspace(workspace) as opened:
        found = list(recorded(file, opened.runs))
        run = next((each.folder for each in found if each.folder is not None), None)
        if run is None:
            raise UserError(f"{file} is in AWM's layout already.")
        count = export_awm((each.trajectory for each in found), run, folder)
    print_json({"rollouts": count, "folder": str(folder)}) if as_json else say(f"{count} rollouts are in {folder}")


@trajectory_command.command("import")
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))
@json_option
@workspace_option
def import_(*, folder: Path, as_json: bool, workspace: str | None) -> None:
    """Take rollouts of AWM's own agent into a run of the workspace. They are not scored by this.

    Examples:

        awm-studio trajectory import outputs/runs
    """
    from train.rollout_run import take_in

    with open_workspace(workspace) as opened:
        run, figures = take_in(opened, folder)
    if as_json:
        print_json({"run": run, **figures})
    else:
        say(f"{figures['rollouts']} rollouts are in run {run}: awm-studio trajectory show {run}")


def _list(trajectories: list[Trajectory], *, as_json: bool) -> None:
    rows = [
        {
            "number": number,
            "key": trajectory.key,
            "policy": trajectory.policy,
            "turns": len(trajectory.turns),
            "end": trajectory.end.value,
            "outcome": _outcome(trajectory),
            "reward": trajectory.reward.total if trajectory.reward else None,
            "seconds": trajectory.seconds,
        }
        for number, trajectory in enumerate(trajectories)
    ]
    if as_json:
        print_json({"trajectories": rows})
    else:
        columns = ["number", "key", "policy", "turns", "end", "outcome", "reward", "seconds"]
        print_table(columns, ([row[column] for column in columns] for row in rows))


def _outcome(trajectory: Trajectory) -> str | None:
    reward = trajectory.reward
    if reward is None:
        return None
    return "left out" if reward.excluded else reward.outcome or trajectory.end.value


def _comparison(trajectory: Trajectory, again: Replay | str) -> dict[str, Any]:
    if isinstance(again, str):
        return {"key": trajectory.key, "same": False, "why": again}
    differing = [f"result of turn {step.number}" for step in again.steps if not step.same]
    if not again.initial_same:
        differing.insert(0, "initial database")
    if not again.final_same:
        differing.append("final database")
    return {"key": trajectory.key, "same": again.same, "why": ", ".join(differing)}


def _document(trajectory: Trajectory, again: Replay | None) -> dict[str, Any]:
    record = trajectory.to_json()
    steps = record.pop("turns")
    for step, turn in zip(steps, again.steps if again else (), strict=False):
        step |= {"same": turn.same, "diff": turn.diff}
    return {**record, "steps": steps, "same": None if again is None else again.same}


def _print(trajectory: Trajectory, again: Replay | None, why: str) -> None:
    click.echo(f"{trajectory.key}  by {visible(trajectory.policy)}")
    click.echo(f"Task: {visible(trajectory.text)}")
    for number, turn in enumerate(trajectory.turns):
        click.echo(f"\n── turn {number}: {turn.move} {visible(turn.tool)}".rstrip())
        click.echo(visible(turn.content or "\n".join(f"{call.name}({call.arguments})" for call in turn.calls)))
        if turn.slip:
            click.echo(f"   slip: {turn.slip}")
        if turn.dropped:
            click.echo(f"   not made, since one call a turn is: {', '.join(map(visible, turn.dropped))}")
        if turn.shown is not None:
            lines = visible(turn.shown).splitlines()
            click.echo("\n".join(f"   │ {line}" for line in lines[:SHOWN_LINES]))
            if len(lines) > SHOWN_LINES:
                click.echo(f"   │ … and {len(lines) - SHOWN_LINES} more lines")
        if again is not None and again.steps[number].diff:
            _print_diff(again.steps[number].diff)
    if again is None and trajectory.diff:
        click.echo("\n── what changed in all")
        _print_diff(trajectory.diff)
    detail = f" ({visible(trajectory.detail)})" if trajectory.detail else ""
    click.echo(f"\nEnd: {trajectory.end}{detail}")
    if trajectory.reward is not None:
        click.echo(f"Reward: {trajectory.reward.total:g}. {visible(' '.join(trajectory.reward.reasons))}")
    if again is None:
        say(f"It cannot be done again here: {why}")
    elif not again.same:
        say("Done again, it does not give the same bytes.")


def _print_diff(diff: Any) -> None:
    for table, changes in diff.items():
        for kind, sign in (("added", "+"), ("removed", "-")):
            for row in changes[kind]:
                click.echo(f"   {sign} {table} {visible(str(row))}")
        for change in changes["changed"]:
            click.echo(
                f"   ~ {table} {visible(str(change['key']))}: {visible(str(change['before']))} → "
                f"{visible(str(change['after']))}"
            )
