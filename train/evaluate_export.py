"""Reports of evaluations as Markdown, CSV and HTML."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.errors import UserError
from pipeline.snapshots import replace_file
from pipeline.words import number_of

Table = tuple[str, list[str], list[list[str]]]
"""A heading, the names of columns, and rows."""


def shown_score(row: Mapping[str, Any]) -> str:
    """A score with its interval and what it rests on; blank, never zero, where nothing was judged."""
    if row["score"] is None:
        return ""
    low, high = row["interval"]
    return f"{row['score']:.3f} ({low:.3f} to {high:.3f})"


def headline(document: Mapping[str, Any]) -> str:
    """The report in a sentence."""
    model = document.get("model") or "the model"
    if document["score"] is None:
        return f"{document['suite']}, {model}: not run. {document['why']}".strip()
    state = "" if document["state"] == "done" else f" {document['state'].capitalize()}: {document['why']}"
    left_out = f", {document['excluded']} left out" if document["excluded"] else ""
    return (
        f"{document['suite']}, {model}: {shown_score(document)} on {number_of(document['tasks'], 'task')}, "
        f"{document['n']} of {document['total']} tries{left_out}.{state}"
    )


def tables(document: Mapping[str, Any]) -> list[Table]:
    """Everything a report says, as tables."""
    found: list[Table] = [("How it was tried", ["", ""], [[name, text] for name, text in facts(document)])]
    rows = [
        [str(row["k"]), str(row["tasks"]), _with_interval(row, "at"), _with_interval(row, "hat")]
        for row in document["pass"]
    ]
    found.append(("Several tries", ["k", "tasks", "pass@k", "pass^k"], rows))
    for label, groups in document["by"].items():
        shown = [[g["value"], str(g["tasks"]), str(g["n"]), shown_score(g)] for g in groups]
        found.append((f"By {label}", [label, "tasks", "tries", "score, 95 % interval"], shown))
    items = [
        [item["id"], f"{sum(item['passes'])}/{len(item['passes'])}", _why(item["excluded"])]
        for item in document["items"]
    ]
    found.append(("Tasks", ["task", "passed", "left out"], items))
    return [table for table in found if table[2]]


def markdown(document: Mapping[str, Any]) -> str:
    """The report as Markdown."""
    parts = [f"# {document['suite']}", headline(document)]
    for heading, columns, rows in tables(document):
        parts.append(f"## {heading}\n\n{markdown_table(columns, rows)}")
    return "\n\n".join(parts) + "\n"


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = (" | ".join(map(_cell, line)) for line in (columns, ["---"] * len(columns), *rows))
    return "\n".join(f"| {line} |" for line in lines)


def comma_separated(document: Mapping[str, Any]) -> str:
    """The tasks of a report, one a row, with their labels and every try."""
    labels = sorted({label for item in document["items"] for label in item["labels"]})
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["suite", "version", "model", "task", *labels, "judged", "passed", "left_out"])
    about = [document["suite"], document["version"], document.get("model") or ""]
    for item in document["items"]:
        own = [item["labels"].get(label, "") for label in labels]
        writer.writerow([*about, item["id"], *own, len(item["passes"]), sum(item["passes"]), _why(item["excluded"])])
    return file.getvalue()


STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c1c1c;background:#fff}
table{border-collapse:collapse}td,th{text-align:left;padding:.2rem 1rem .2rem 0;border-bottom:1px solid #ddd}
svg{vertical-align:middle}@media(prefers-color-scheme:dark){body{color:#ddd;background:#161616}}
"""


def page(document: Mapping[str, Any]) -> str:
    """The report as one HTML file that needs nothing else, with bars for the groups."""
    parts = [f"<h1>{_text(document['suite'])}</h1><p>{_text(headline(document))}</p>"]
    for heading, columns, rows in tables(document):
        groups = document["by"].get(heading.removeprefix("By ")) if heading.startswith("By ") else None
        head = "".join(f"<th>{_text(name)}</th>" for name in columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + (_bar(groups[n]) if groups else "") + "</tr>"
            for n, row in enumerate(rows)
        )
        parts.append(f"<h2>{_text(heading)}</h2><table><tr>{head}</tr>{body}</table>")
    title = _text(f"{document['suite']} {document.get('model') or ''}")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
        f"<body>{''.join(parts)}</body></html>\n"
    )


FORMATS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {".md": markdown, ".csv": comma_separated, ".html": page}


def export(document: Mapping[str, Any], path: Path) -> None:
    """Write a report as what the file's name ends in: .md, .csv or .html. Raises UserError where that cannot be."""
    made = FORMATS.get(path.suffix.lower())
    if made is None:
        raise UserError(f"{path} cannot be written: its name must end in {', '.join(FORMATS)}.")
    try:
        replace_file(path, made(document).encode())
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}.") from error


def facts(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a report says of how it was made and what that took, as names and texts; only what is known."""
    named: dict[str, Any] = {
        name: document.get(name) for name in ("suite", "version", "model", "subset", "preset", "tries")
    }
    named |= {"left out": _why(document["excluded_why"]), "harness's own overall score": document.get("overall")}
    named |= document.get("settings", {})
    if slips := document.get("format_errors"):
        kinds = _why(slips["slips"])
        named["format errors"] = f"in {slips['rollouts']} rollouts{f' ({kinds})' if kinds else ''}"
    named |= {f"mean {name.replace('_', ' ')}": value for name, value in document.get("means", {}).items()}
    for name in ("requests", "user_requests"):
        if used := document.get(name):
            tokens = f"{used['tokens_in']:,} tokens read, {used['tokens_out']:,} written"
            named[name.replace("_", " ")] = f"{used['asked']:,}, {tokens}, {used['errors']:,} errors"
    if document.get("usd") is not None:
        named["cost"] = f"${document['usd']:,.2f}"
    return [(name, _told(value)) for name, value in named.items() if value not in (None, "", {})]


def _told(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {item}" for name, item in value.items())
    return str(value)


def _with_interval(row: Mapping[str, Any], name: str) -> str:
    return shown_score({"score": row[name], "interval": row[f"{name}_interval"]})


def _why(excluded: Mapping[str, int]) -> str:
    return ", ".join(f"{reason.replace('_', ' ')}: {count}" for reason, count in excluded.items())


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _text(value: Any) -> str:
    return html.escape(str(value))


def _bar(group: Mapping[str, Any]) -> str:
    """A score between 0 and 1 as a bar with its interval as a line."""
    if group["score"] is None:
        return "<td></td>"
    score, (low, high) = group["score"] * 200, (end * 200 for end in group["interval"])
    return (
        f'<td><svg width="200" height="14" role="img" aria-label="{shown_score(group)}">'
        f'<rect width="200" height="14" fill="#8883"/><rect width="{score:.0f}" height="14" fill="#4477aa"/>'
        f'<line x1="{low:.0f}" x2="{high:.0f}" y1="7" y2="7" stroke="#cc3311" stroke-width="2"/></svg></td>'
    )


def comparison_tables(document: Mapping[str, Any]) -> list[Table]:
    """A comparison (see `evaluate_compare.compare`) as tables."""
    difference = f"{document['difference']:+.3f}"
    if document["interval"] is not None:
        difference += " ({:+.3f} to {:+.3f})".format(*document["interval"])
    rows: Sequence[tuple[str, Any]] = [
        ("tasks judged in both", document["tasks"]),
        (f"before: {document['before']['model']}", f"{document['before_score']:.3f}"),
        (f"after: {document['after']['model']}", f"{document['after_score']:.3f}"),
        ("difference, 95 % interval", difference),
        ("by", document["test"] + ("" if document["p"] is None else f", p = {document['p']:.4f}")),
        ("the second is", ": ".join(filter(None, [document["verdict"], document["why"]]))),
        *((f"{name} differs", f"{one} / {other}") for name, (one, other) in document["settings"].items()),
    ]
    found: list[Table] = [("Comparison", ["", ""], [[name, str(value)] for name, value in rows])]
    for name in ("gained", "lost"):
        changes = [[row["id"], row["before"], row["after"]] for row in document[name]]
        found.append((name.capitalize(), ["task", "before", "after"], changes))
    return [table for table in found if table[2]]
