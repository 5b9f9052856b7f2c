"""Everything a person can do, once.

Key bindings, footer, help, command palette and the keymap file are all read from ACTIONS. An action `scope.name`
is carried out by the method `action_name` of the widget, screen or app that lists its scope in `BINDINGS`.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from textual.binding import Binding, BindingType

from pipeline.errors import UserError
from pipeline.settings import settings_path
from studio.screens import MODES

if TYPE_CHECKING:
    from textual.screen import Screen


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a person can do. `keys` are Textual key names, comma separated; `label` is for the footer."""

    scope: str
    name: str
    keys: str
    label: str
    help: str
    footer: bool = True
    palette: bool = True
    priority: bool = False
    call: str = ""

    @property
    def id(self) -> str:
        """The name in the keymap file."""
        return f"{self.scope}.{self.name}"


SCOPES: Mapping[str, str] = {
    "app": "Everywhere",
    "grid": "In a list",
    "board": "On the board",
    "pipeline": "Pipeline",
    "stage": "A stage",
    "part": "Editing what a stage made",
    "steer": "What a run is told",
    "new": "A new run",
    "environments": "Environments",
    "filter": "In the filter",
    "tables": "Tables",
    "tools": "Tools",
    "call": "Calling a tool",
    "finish": "Finishing a task",
    "task": "Editing a task",
    "compare": "Comparing",
    "probes": "Probes of a verifier",
    "fixes": "Remedies",
    "review": "Reviewing",
    "concepts": "Concepts",
    "map": "On the map",
    "duplicates": "Near-duplicates",
    "judge": "Judging pairs",
    "subsets": "Subsets",
    "members": "A subset",
    "compare_subsets": "Comparing subsets",
    "form": "In a form",
    "train": "Train",
    "charts": "Curves",
    "rollouts": "Rollouts of a step",
    "rollout": "A rollout",
    "evaluate": "Evaluate",
    "record": "A task's record",
    "activity": "Activity",
    "settings": "Settings",
    "first": "First steps",
    "page": "A page for the browser",
    "prompt": "While answering",
    "dialog": "In a dialog",
}
"""The heading each scope has in help."""

ACTIONS: tuple[Action, ...] = (
    *(
        Action("app", mode.name, mode.key, mode.title, mode.help, footer=False, call=f"switch_mode('{mode.name}')")
        for mode in MODES
    ),
    Action("app", "help", "question_mark,f1", "Help", "What this screen is for and every key that works here"),
    Action("app", "command_palette", "ctrl+p", "All", "Every action by name", palette=False, priority=True),
    Action("app", "copy", "y", "Copy", "Copy what is selected to the clipboard of your terminal", footer=False),
    Action("app", "theme", "f10", "Theme", "Try the next theme; the settings keep one", footer=False),
    Action("app", "quit", "ctrl+q", "Quit", "Leave the studio; runs go on without it", footer=False, priority=True),
    Action("grid", "up", "up,k", "Up", "One row up", footer=False, palette=False),
    Action("grid", "down", "down,j", "Down", "One row down", footer=False, palette=False),
    Action("grid", "page_up", "pageup", "Page up", "One screenful up", footer=False, palette=False),
    Action("grid", "page_down", "pagedown", "Page down", "One screenful down", footer=False, palette=False),
    Action("grid", "first", "home,g", "First", "To the first row", footer=False, palette=False),
    Action("grid", "last", "end,G", "Last", "To the last row", footer=False, palette=False),
    Action("grid", "left", "left,h", "Left", "Scroll a wide list to the left", footer=False, palette=False),
    Action("grid", "right", "right,l", "Right", "Scroll a wide list to the right", footer=False, palette=False),
    Action("grid", "select", "enter", "Open", "Open the row under the cursor", palette=False),
    Action("board", "left", "left,h", "Stage before", "To the stage before", footer=False, palette=False),
    Action("board", "right", "right,l", "Next stage", "To the next stage", footer=False, palette=False),
    Action("steer", "pause", "space", "Pause", "Ask nothing more for this scenario, or let it go on"),
    Action("steer", "retry", "r", "Retry", "Make the stage again with a hint that goes into the prompt"),
    Action("steer", "approve", "a", "Approve", "Let what waits for your decision go on"),
    Action("steer", "reject", "x", "Reject", "Send the result back; your reason goes to the model"),
    Action("steer", "edit", "e", "Edit", "Put your own text in place of the model's"),
    Action("board", "next_waiting", "g", "Waiting", "To the next stage that waits for you"),
    Action("pipeline", "new_run", "n", "New run", "Start a synthesis in a process of its own", footer=False),
    Action("pipeline", "filter", "slash", "Words", "Show only scenarios with these words", footer=False),
    Action("pipeline", "waiting", "w", "Only waiting", "Show only what waits for you, or all again", footer=False),
    Action(
        "pipeline", "failing", "f", "Only failing", "Show only what fails or is corrected, or all again", footer=False
    ),
    Action("pipeline", "done", "d", "Only done", "Show only what is done, or all again", footer=False),
    Action("pipeline", "zoom", "z", "Zoom", "The stage under the cursor alone, or the board", footer=False),
    Action("pipeline", "choose_run", "o", "Which run", "Choose the run to show; else it is the newest", footer=False),
    Action("pipeline", "back", "escape", "Back", "Back to the board; on the board, show all", footer=False),
    Action("stage", "difference", "d", "Diff", "What changed since the attempt before, or what was found in both"),
    Action("stage", "next_tab", "right_square_bracket", "Next tab", "The next tab", footer=False),
    Action("stage", "previous_tab", "left_square_bracket", "Tab before", "The tab before", footer=False),
    Action("stage", "next_stage", "greater_than_sign", "Next stage", "The next stage of the scenario", footer=False),
    Action("stage", "previous_stage", "less_than_sign", "Stage before", "The stage before", footer=False),
    Action("stage", "back", "escape", "Back", "Back to the board"),
    Action("steer", "again", "R", "Again", "Make a stage again: as it was, from a version; or all that failed", False),
    Action("steer", "drop", "D", "Drop", "Leave the scenario out; what it has stays in the catalog", footer=False),
    Action(
        "steer", "pause_all", "P", "Pause all", "Pause the run, or let it go on (starting its process)", footer=False
    ),
    Action("steer", "approve_all", "A", "Approve all", "Approve everything that waits for a decision", footer=False),
    Action("steer", "gate", "t", "Gate", "Hold a stage's results for approval, or no more", footer=False),
    Action("steer", "count", "c", "Count", "Change how many environments are wanted", footer=False),
    Action("steer", "model", "m", "Model", "Change the model of a stage from now on", footer=False),
    Action("steer", "budget", "b", "Budget", "Change the most that may be spent", footer=False),
    Action("steer", "stop", "S", "Stop", "End the process that works on the run", footer=False),
    Action("part", "save", "ctrl+s", "Save", "Keep a draft and run the checks on it"),
    Action("part", "editor", "f4", "$EDITOR", "Edit it in your own editor"),
    Action("part", "check", "f5", "Check", "Run the checks on the text as it is"),
    Action("part", "difference", "f6", "Diff", "What you changed", priority=True),
    Action("part", "accept", "f8", "Accept", "Make it your version of the part; the run goes on with it"),
    Action("part", "back", "escape", "Back", "Back, if nothing is lost by it"),
    Action("new", "start", "ctrl+s", "Start", "Start it in a process of its own"),
    Action("new", "close", "escape", "Close", "Start nothing"),
    Action("environments", "filter", "slash", "Filter", "Narrow the list: words, domain:travel tables>10 -check:fail"),
    Action("environments", "sort", "s", "Sort", "Choose the column to sort by; the same column again turns it round"),
    Action("environments", "mark", "x", "Mark", "Mark or unmark the environment"),
    Action("environments", "mark_all", "X", "Mark all", "Mark all environments in the list, or none", footer=False),
    Action("environments", "call", "c", "Call", "Call its tools by hand, on a private copy"),
    Action("environments", "datasette", "o", "Datasette", "Open its database in the browser"),
    Action("environments", "compare", "d", "Diff", "Compare two environments: the marked ones, or marked and current"),
    Action(
        "environments",
        "check",
        "v",
        "Check",
        "Find out whether the marked environments, or the current one, run",
    ),
    Action(
        "environments",
        "audit",
        "a",
        "Audit",
        "Find out whether the verifiers of the marked environments, or of the current one, can be trusted",
    ),
    Action("environments", "review", "r", "Review", "What checks and audits leave to you: accept, waive, fix or drop"),
    Action("environments", "fix", "f", "Fix", "Put right what was found where that is mechanical", footer=False),
    Action("environments", "edit", "e", "Edit", "Change a task, with rows of the database beside it", footer=False),
    Action("environments", "zoom", "z", "Zoom", "The details alone, or beside the list", footer=False),
    Action("environments", "next_tab", "right_square_bracket", "Next tab", "The next tab of the details", footer=False),
    Action("environments", "previous_tab", "left_square_bracket", "Tab before", "The tab before", footer=False),
    Action("environments", "refresh", "f5", "Read again", "Read the list from the catalog again", footer=False),
    Action("environments", "back", "escape", "Back", "Back to the list; in the list, clear the filter", footer=False),
    Action("filter", "to_list", "down", "To the list", "Leave the filter as it is and go to the list", palette=False),
    Action("filter", "clear", "escape", "Clear", "Show everything again and go to the list", palette=False),
    Action("tables", "view", "t", "View", "Show the rows, the columns or the DDL of the table"),
    Action("tools", "find_code", "f", "Find in code", "Go to the source of the tool"),
    Action("call", "run", "f5,ctrl+r", "Call", "Make the call with the arguments in the form"),
    Action("call", "stop", "f4", "Stop", "Stop the call that is running; the state stays that before it", footer=False),
    Action("call", "values", "f2", "Values", "Choose the argument's value from the rows of the database"),
    Action("call", "undo", "f6", "Undo", "Back to the state before the last call"),
    Action("call", "reset", "f7", "Reset", "Back to the initial state, forgetting all calls"),
    Action("call", "finish", "f8,ctrl+s", "Task", "Verify a task with the calls so far, or save them as its solution"),
    Action("call", "datasette", "f9", "Datasette", "Open the database as it is now, with what changed, in the browser"),
    Action("call", "back", "escape", "Back", "Back to the environment"),
    Action("finish", "verify", "f8", "Verify", "Ask the task's verifiers about the state and the answer"),
    Action("finish", "save", "ctrl+s", "Save", "Keep the calls and the answer as the task's reference solution"),
    Action("finish", "close", "escape", "Close", "Back to the calls"),
    Action("compare", "next_difference", "n", "Next ≠", "To the next difference"),
    Action("compare", "back", "escape", "Back", "Back to the environments"),
    Action("probes", "against", "t", "Against", "Compare with the initial database, or with the known solution"),
    Action("probes", "failed", "w", "What counts", "Only what counts against the verifier, or everything"),
    Action("probes", "find_code", "f", "Find in code", "To the line of the verifier that looks at what was changed"),
    Action("probes", "next_tab", "right_square_bracket", "Next tab", "The next tab", footer=False),
    Action("probes", "previous_tab", "left_square_bracket", "Tab before", "The tab before", footer=False),
    Action("probes", "back", "escape", "Back", "Back to the probes, then to the environment"),
    Action("fixes", "apply", "ctrl+s", "Make it", "Make the edit, as your version, and check again"),
    Action("fixes", "back", "escape", "Back", "Back, with nothing changed"),
    Action("review", "accept", "a", "Accept", "It is no fault: it does not count any more"),
    Action("review", "waive", "w", "Waive", "A fault that does not matter: say why, and it does not count any more"),
    Action("review", "fix", "f", "Fix", "Show the remedy where it is mechanical; else note that it is to be fixed"),
    Action("review", "drop", "D", "Drop", "Leave the environment out: subsets do not take it"),
    Action("review", "reopen", "u", "Reopen", "Take the decision back"),
    Action("review", "open", "o", "Go there", "Go to the environment, at the finding"),
    Action("review", "choose", "m", "Rubric", "Choose from what may be decided, with what each means", footer=False),
    Action("review", "decided", "d", "Decided", "Also what somebody has decided, or only what is open", footer=False),
    Action("review", "filter", "slash", "Words", "Show only items with these words", footer=False),
    Action("review", "export", "E", "Export", "Write the queue and all decisions to a file, CSV or JSON", footer=False),
    Action("review", "back", "escape", "Back", "Back to the environments"),
    Action("task", "save", "ctrl+s", "Save", "Make a new version of the task, by you"),
    Action("task", "back", "escape", "Back", "Back to the text, then out of here"),
    Action("train", "new", "n", "New", "Start a training in a process of its own"),
    Action("train", "stop", "s", "Stop", "Ask the training to stop after its step, with a checkpoint"),
    Action("train", "resume", "r", "Resume", "Go on with the training from its last checkpoint"),
    Action("train", "mark", "x", "Compare", "Lay the training's curves and settings beside the current one's, or not"),
    Action("train", "save", "S", "Save figure", "Save the curves as a figure in the workspace, SVG and PNG"),
    Action("train", "zoom", "z", "Zoom", "The training alone, or beside the list", footer=False),
    Action("train", "next_tab", "right_square_bracket", "Next tab", "Curves, rollouts, settings, log", footer=False),
    Action("train", "previous_tab", "left_square_bracket", "Tab before", "The tab before", footer=False),
    Action("train", "delete", "D", "Delete", "Delete the training's folder: checkpoints, model, all", footer=False),
    Action("train", "back", "escape", "Back", "Back to all charts, then to the list, then unmark all", footer=False),
    Action("charts", "left", "left,h", "Chart before", "To the chart before", footer=False, palette=False),
    Action("charts", "right", "right,l", "Next chart", "To the next chart", footer=False, palette=False),
    Action("charts", "up", "up,k", "Chart above", "To the chart above", footer=False, palette=False),
    Action("charts", "down", "down,j", "Chart below", "To the chart below", footer=False, palette=False),
    Action("charts", "alone", "enter,m", "Enlarge", "The chart under the cursor with all the room, or all of them"),
    Action("rollouts", "step_before", "less_than_sign,comma", "Step before", "The rollouts of the step before"),
    Action("rollouts", "next_step", "greater_than_sign,full_stop", "Next step", "The rollouts of the next step"),
    Action("rollout", "back", "escape", "Back", "Back to the turns, then to the training"),
    Action("map", "left", "left,h", "Left", "To the next point on the left", footer=False, palette=False),
    Action("map", "right", "right,l", "Right", "To the next point on the right", footer=False, palette=False),
    Action("map", "up", "up,k", "Up", "To the next point above", footer=False, palette=False),
    Action("map", "down", "down,j", "Down", "To the next point below", footer=False, palette=False),
    Action("map", "choose", "enter", "List", "To the list of concepts"),
    Action("map", "zoom_in", "plus,equals_sign", "Closer", "Zoom in on the cursor", footer=False),
    Action("map", "zoom_out", "minus", "Further", "Zoom out", footer=False),
    Action("map", "whole", "0", "Whole", "Everything in sight, in its colours", footer=False),
    Action("concepts", "lower", "left_square_bracket", "Fewer", "The threshold down by 0.01: fewer concepts"),
    Action("concepts", "higher", "right_square_bracket", "More", "The threshold up by 0.01: more concepts"),
    Action("concepts", "next_concept", "tab", "Concept", "Light up the next concept", priority=True),
    Action("concepts", "duplicates", "d", "Near-duplicates", "Pairs hardly two: keep, merge or drop"),
    Action("concepts", "judge", "p", "Judge pairs", "Say of pairs whether they are one concept: it sets the threshold"),
    Action("concepts", "next_sparse", "g", "Sparse", "To where the set is thinnest, then to the next such place"),
    Action("concepts", "make_here", "n", "Make here", "Make new scenarios of the kind under the cursor"),
    Action("concepts", "measure", "r", "Measure", "Compare all environments, in a process of its own"),
    Action("concepts", "open", "o", "Open", "Go to the environment under the cursor", footer=False),
    Action("concepts", "save_figure", "S", "Save figure", "The map as an interactive page or a PNG", footer=False),
    Action("concepts", "keep", "w", "Write", "Write each environment's concept into the catalog", footer=False),
    Action(
        "concepts", "previous_concept", "shift+tab", "Concept before", "Light up the one before", False, priority=True
    ),
    Action("concepts", "much_lower", "left_curly_bracket", "Far fewer", "The threshold down by 0.05", footer=False),
    Action("concepts", "much_higher", "right_curly_bracket", "Far more", "The threshold up by 0.05", footer=False),
    Action("concepts", "zoom", "z", "Zoom", "The list alone, or the map", footer=False),
    Action("concepts", "back", "escape", "Back", "Back to the map; there, everything in sight again", footer=False),
    Action("duplicates", "keep", "b", "Keep both", "They differ enough: both stay"),
    Action("duplicates", "merge", "m", "Merge", "They are one: the right one gives way where both are to be had"),
    Action("duplicates", "drop", "x", "Drop right", "No subset takes the right one"),
    Action("duplicates", "drop_left", "X", "Drop left", "No subset takes the left one"),
    Action("duplicates", "swap", "s", "Swap", "Left becomes right"),
    Action("duplicates", "undo", "u", "Undo", "Forget the decision about the pair"),
    Action("duplicates", "back", "escape", "Back", "Back to the map"),
    Action("judge", "same", "s", "Same", "The two are one concept", palette=False),
    Action("judge", "different", "d", "Different", "They are two", palette=False),
    Action("judge", "skip", "space", "Skip", "No answer", palette=False),
    Action("judge", "before", "u", "Before", "The pair before, to answer it again", palette=False),
    Action("judge", "back", "escape", "Back", "Back to the map; answers are kept"),
    Action("subsets", "build", "b", "Build", "Pick a new subset by a recipe, with live counts"),
    Action("subsets", "export", "e", "Export", "Write the subset to a folder, in a process of its own"),
    Action("subsets", "mark", "x", "Mark", "Mark the subset that another one is compared with"),
    Action("subsets", "compare", "c", "Compare", "Compare the marked subset with the one under the cursor"),
    Action("subsets", "forget", "D", "Forget", "Forget the subset; what was exported stays", footer=False),
    Action("subsets", "zoom", "z", "Zoom", "The card alone, or beside the list"),
    Action("subsets", "back", "escape", "Back", "Back to the list", footer=False),
    Action("members", "back", "escape", "Back", "From the tasks to the environments, then to the subsets"),
    Action("compare_subsets", "back", "escape", "Back", "Back to the subsets"),
    Action("form", "start", "ctrl+s", "Start", "Start it in a process of its own"),
    Action("form", "close", "escape", "Close", "Start nothing"),
    Action("evaluate", "new", "n", "New", "Start an evaluation in a process of its own"),
    Action("evaluate", "stop", "s", "Stop", "Ask the evaluation to stop; what was judged is kept"),
    Action("evaluate", "resume", "r", "Resume", "Do what is missing of the evaluation"),
    Action("evaluate", "mark", "x", "Compare", "Mark the evaluation that another one is to be compared with, or not"),
    Action("evaluate", "export", "e", "Export", "Write the report as Markdown, CSV and HTML into the workspace"),
    Action("evaluate", "zoom", "z", "Zoom", "The evaluation alone, or beside the list", footer=False),
    Action(
        "evaluate", "next_tab", "right_square_bracket", "Next tab", "Result, tasks, live, compare, suites", footer=False
    ),
    Action("evaluate", "previous_tab", "left_square_bracket", "Tab before", "The tab before", footer=False),
    Action("evaluate", "refresh", "f5", "Look again", "Look again which suites can be run here", footer=False),
    Action("evaluate", "back", "escape", "Back", "Back to the list, then unmark", footer=False),
    Action("record", "back", "escape", "Back", "Back to the tasks"),
    Action("activity", "stop", "s", "Stop", "Ask the run to end; what it has done is kept"),
    Action("activity", "resume", "r", "Resume", "Go on with a run that was interrupted or stopped"),
    Action("activity", "back", "escape", "Back", "Back to the runs", footer=False),
    Action("settings", "save", "ctrl+s", "Save", "Write the settings file"),
    Action("settings", "edit_file", "f4", "Edit the file", "Open the settings file in $EDITOR"),
    Action("first", "make", "m", "Make environments", "Make environments offline, from the built-in domains"),
    Action("first", "import", "i", "Import", "Import a folder in the AWM release layout"),
    Action("first", "model", "s", "Set up a model", "Name the endpoint that writes environments"),
    Action("page", "copy", "y", "Copy address", "Copy the page's address"),
    Action("page", "copy_tunnel", "t", "Copy ssh line", "Copy the line to type on your own machine"),
    Action("page", "close", "escape,q,enter", "Close", "Back to the screen below"),
    Action("prompt", "cancel", "escape", "Leave", "Answer nothing"),
    Action("dialog", "close", "escape,q", "Close", "Back to the screen below"),
)


class KeymapError(UserError):
    """The keymap file cannot be used."""


def bindings(scope: str) -> list[BindingType]:
    """The key bindings of a scope, for a `BINDINGS` class variable."""
    return [
        Binding(
            action.keys,
            action.call or action.name,
            action.label,
            show=action.footer,
            tooltip=action.help,
            priority=action.priority,
            id=action.id,
        )
        for action in ACTIONS
        if action.scope == scope
    ]


def find(action_id: str | None) -> Action | None:
    """The action with this id."""
    return next((action for action in ACTIONS if action.id == action_id), None)


def available(screen: Screen[object]) -> list[tuple[Action, str, bool]]:
    """What can be done on a screen now: each action once, with the key that does it and whether it is possible."""
    seen: dict[str, tuple[Action, str, bool]] = {}
    for active in screen.active_bindings.values():
        action = find(active.binding.id)
        if action is not None and action.id not in seen:
            seen[action.id] = (action, screen.app.get_key_display(active.binding), active.enabled)
    order = {action.id: number for number, action in enumerate(ACTIONS)}
    return sorted(seen.values(), key=lambda entry: order[entry[0].id])


def keymap_path() -> Path:
    """Where a person's own keys are kept: `keymap.toml` beside the settings."""
    return settings_path().with_name("keymap.toml")


def read_keymap(path: Path) -> dict[str, str]:
    """The keymap file: a TOML table of action ids and keys, for example `"environments.call" = "C,f2"`.

    A file that does not exist changes nothing. Raises KeymapError naming the line or the unknown action.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise KeymapError(f"The keymap {path} cannot be read: {error}.") from error
    ids = [action.id for action in ACTIONS]
    for name, keys in table.items():
        if name not in ids:
            close = difflib.get_close_matches(name, ids, n=1)
            guess = f" Did you mean {close[0]}?" if close else f" Actions: {', '.join(ids)}."
            raise KeymapError(f"The keymap {path} names an action that does not exist: {name}.{guess}")
        if not isinstance(keys, str) or not keys.strip():
            raise KeymapError(f'The keymap {path} needs keys in quotes for {name}, for example "ctrl+t" or "c,f2".')
    return table
