"""A document as blocks, and its two spellings: one HTML file that needs nothing else, and Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeAlias


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is the document's title."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """Some sentences."""

    text: str


@dataclass(frozen=True)
class Grid:
    """A table of texts; None is an empty cell. Columns of numbers are told by their heading's leading `#`."""

    headings: tuple[str, ...]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True)
class Figure:
    """A drawing, left out of Markdown, since a table beside it has the same numbers."""

    svg: str


@dataclass(frozen=True)
class Source:
    """Source text."""

    text: str
    language: str = "python"


@dataclass(frozen=True)
class Fold:
    """Blocks that open when asked to."""

    title: str
    blocks: tuple[Block, ...]


Block: TypeAlias = Heading | Paragraph | Grid | Figure | Source | Fold

STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8882; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; } h3 { font-size: 1rem; }
table { border-collapse: collapse; margin: .6rem 0; display: block; overflow-x: auto; }
th, td { padding: .2rem .7rem .2rem 0; border-bottom: 1px solid var(--line); vertical-align: top; text-align: left; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
details { border-left: 3px solid var(--line); padding-left: .8rem; margin: .4rem 0; }
summary { cursor: pointer; } pre { background: var(--soft); padding: .6rem; overflow-x: auto; font-size: 13px; }
svg { max-width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
svg .label { text-anchor: end; } svg .tick, svg .piece { text-anchor: middle; } svg .tick { opacity: .7; }
svg .piece { fill: #000; } svg .grid { stroke: currentColor; opacity: .15; }
svg .range { stroke: currentColor; stroke-width: 2; opacity: .6; } svg circle { fill: #0072b2; }
"""


def to_html(title: str, blocks: Sequence[Block]) -> str:
    """A page of its own: style and figures inside, no script, nothing from elsewhere."""
    body = "\n".join(map(_html, blocks))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def to_markdown(blocks: Sequence[Block]) -> str:
    """The same in GitHub's Markdown."""
    return "\n\n".join(text for block in blocks if (text := _markdown(block))) + "\n"


def _html(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{escape(text)}</h{level}>"
        case Paragraph(text):
            return f"<p>{escape(text)}</p>"
        case Figure(svg):
            return f"<figure>{svg}</figure>"
        case Source(text):
            return f"<pre><code>{escape(text)}</code></pre>"
        case Fold(title, blocks):
            return f"<details><summary>{escape(title)}</summary>{''.join(map(_html, blocks))}</details>"
        case Grid(headings, rows):
            kinds = [' class="number"' if heading.startswith("#") else "" for heading in headings]
            head = "".join(f"<th{k}>{escape(h.lstrip('#'))}</th>" for k, h in zip(kinds, headings, strict=True))
            lines = (
                "".join(f"<td{kind}>{escape(_cell(value))}</td>" for kind, value in zip(kinds, row, strict=True))
                for row in rows
            )
            body = "".join(f"<tr>{line}</tr>" for line in lines)
            return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _markdown(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {_inline(text)}"
        case Paragraph(text):
            return _inline(text)
        case Figure():
            return ""
        case Source(text, language):
            fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", text)), default=0))
            return f"{fence}{language}\n{text}\n{fence}"
        case Fold(title, blocks):
            inner = "\n\n".join(map(_markdown, blocks))
            return f"<details><summary>{escape(title)}</summary>\n\n{inner}\n\n</details>"
        case Grid(headings, rows):
            rule = "|".join("---:" if heading.startswith("#") else "---" for heading in headings)
            lines = [" | ".join(_inline(heading.lstrip("#")) for heading in headings)]
            lines += [" | ".join(_inline(_cell(value)) for value in row) for row in rows]
            return "\n".join((f"| {lines[0]} |", f"|{rule}|", *(f"| {line} |" for line in lines[1:])))


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1%}"
    return "" if value is None else str(value)


def _inline(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return " ".join(re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", text).split())
