"""The report: one file that stands alone, with every number of the audit, and no way in for what verifiers say."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from curation.audit.blocks import Grid, Paragraph, Source, to_html, to_markdown
from curation.audit.figures import Share, shares, stacked
from curation.audit.records import Disagreement, EnvironmentAudit, TaskState, VerifierAudit
from curation.audit.report import report, write_report
from curation.audit.summary import by_category, summary
from pipeline.errors import UserError
from pipeline.findings import Finding
from pipeline.model import Mode

EVIL = '<script>alert(1)</script> | `x` *y* & "z"'
SOUND = VerifierAudit(
    name="desk",
    domain=None,
    task=0,
    mode=Mode.code,
    verdict="trusted",
    why="9 near misses rejected",
    category="write",
    steps=2,
    solutions=("person",),
    tried={"untouched": 4, "value_off": 5, "reference": 1, "ids": 1},
    failed={},
    reads={"ticket": ("id", "state")},
    may_change={"ticket": {"added": 0, "removed": 0, "changed": 1, "columns": ["state"]}},
    findings=(),
)
LOOSE = replace(
    SOUND,
    task=1,
    verdict="loose",
    why="accepted: tables it never reads emptied",
    tried={"untouched": 4, "collateral": 1, "reference": 1},
    failed={"collateral": 1},
    findings=(Finding("accepts_collateral", "warn", "verifier", "accepts …", evidence=EVIL, tasks=(1,)),),
)
JUDGED = replace(
    SOUND, task=2, mode=Mode.sql, verdict="unproven", why="its evidence needs a judge", category=None, steps=None,
    solutions=(), tried={}, may_change=None,
)  # fmt: skip
AUDITS = [
    EnvironmentAudit(
        "desk",
        (SOUND, LOOSE),
        (TaskState(0, "solvable", "runs"), TaskState(1, "blocked", EVIL)),
        (Disagreement(0, {"others/complete/others": 3, "complete/complete/complete": 8}),),
    ),
    EnvironmentAudit("other", (JUDGED,), (TaskState(2, "unproven", "no known solution"),)),
    EnvironmentAudit("broken", (), (), findings=(Finding("load_syntax", "error", "code", EVIL),)),
]


class Page(HTMLParser):
    """What a browser would make of a page: the tags that are open, all texts, all tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.add(tag)
        if tag not in ("meta", "line", "circle", "rect"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_page_is_whole_stands_alone_and_runs_nothing() -> None:
    text = to_html("Audit", list(report(AUDITS)))
    page = Page(text)
    assert page.open == []
    assert "script" not in page.tags
    assert EVIL in page.texts
    assert not re.search(r"(?:src|href)=", text)
    assert {"svg", "table", "details", "style"} <= page.tags


def test_every_verdict_rate_and_disagreement_is_in_both_forms() -> None:
    blocks = list(report(AUDITS))
    page, markdown = " ".join(Page(to_html("Audit", blocks)).texts), to_markdown(blocks)
    for said in (
        "3 verifiers of 3 environments: 1 trusted, 1 unproven, 0 strict, 1 loose, 0 broken",
        "which a guard would take care of: 1",
        "verifiers whose evidence needs a judge (1)",
        "tables it never reads emptied",
        "task 1, code mode: loose",
        "1 solvable, 1 blocked, 1 unproven",
    ):
        assert said in page
        assert said in markdown
    assert "| others | complete | others | 3 |" in markdown
    assert "| tables it never reads emptied | 1 | 1 | 100.0% | 20.6% | 100.0% |" in markdown
    assert (
        "| 1-2 calls | 2 | 1 trusted, 1 loose | 1 / 14 | 7.1% | 1.3% | 31.5% | 0 / 3 | 0.0% | 0.0% | 56.1% | even |"
        in markdown
    )


def test_markdown_tables_keep_their_columns_whatever_is_in_them() -> None:
    text = to_markdown([Grid(("what", "#count"), [(EVIL, 3), ("two\nlines", None)]), Paragraph(EVIL)])
    rows = text.splitlines()[:4]
    assert [len(re.findall(r"(?<!\\)\|", row)) for row in rows] == [3, 3, 3, 3]
    assert rows[1] == "|---|---:|"
    assert "<script>" not in text


def test_source_in_markdown_is_fenced_by_more_than_it_contains() -> None:
    assert to_markdown([Source("a ``` b")]).startswith("````python\n")


def test_an_audit_of_nothing_is_a_report_too() -> None:
    page = Page(to_html("Audit", list(report([]))))
    assert page.open == []
    assert any("0 verifiers of 0 environments" in text for text in page.texts)


@pytest.mark.parametrize("name", ["out.html", "out.md", "out"])
def test_the_name_of_the_file_chooses_its_form(tmp_path: Path, name: str) -> None:
    write_report(tmp_path / name, AUDITS)
    text = (tmp_path / name).read_text("utf-8")
    assert text.startswith("# Audit" if name.endswith(".md") else "<!doctype html>")


def test_a_report_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written"):
        write_report(tmp_path / "nowhere" / "out.html", AUDITS)


def test_figures_say_their_numbers_without_colour() -> None:
    figure = shares([Share("a <row>", 1, 4, 0.1, 0.7)], axis="share accepted")
    assert "1 of 4 (25.0%; 95 % interval 10.0% to 70.0%)" in figure
    assert "1 / 4" in figure and "<row>" not in figure
    bar = stacked({"code": {"trusted": 3, "loose": 1, "broken": 0}}, title="Verdicts")
    assert "code: trusted 3 of 4" in bar and "code: loose 1 of 4" in bar and "broken" not in bar


def test_the_summary_counts_by_kind_and_says_what_it_leaves_out() -> None:
    totals = summary(AUDITS)
    assert totals["verdicts"] == {"trusted": 1, "unproven": 1, "strict": 0, "loose": 1, "broken": 0}
    assert totals["only_collateral"] == 1
    assert totals["kinds"]["untouched"]["tried"] == 8
    assert totals["kinds"]["collateral"]["failed"] == 1
    assert totals["findings"]["accepts_collateral"] == {"findings": 1, "verifiers": 1}
    assert totals["disagreement"][-1] == {"right": "others", "code": "complete", "sql": "others", "trials": 3}
    assert totals["excluded"] == {"verifiers whose evidence needs a judge": 1}


def test_categories_group_by_mode_task_steps_and_domain() -> None:
    groups = by_category(AUDITS)
    assert set(groups) == {"mode", "task", "steps", "domain"}
    assert {name: group["verifiers"] for name, group in groups["mode"].items()} == {"code": 2, "sql": 1}
    assert {name: group["verifiers"] for name, group in groups["task"].items()} == {"no known solution": 1, "write": 2}
    assert groups["steps"]["1-2 calls"]["false_accepts"]["tried"] == 14
    assert groups["domain"]["imported"]["bias"] == "even"
