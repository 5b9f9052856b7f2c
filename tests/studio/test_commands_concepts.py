"""`awm-studio diversity`, `subset` and `export --subset`, as a person calls them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("numpy")
pytest.importorskip("scipy")
pytest.importorskip("sklearn")

from curation.landscape import kept_landscape
from pipeline.errors import UserError
from pipeline.workspace import Workspace
from studio.cli import awm_studio
from studio.launch import going_on
from tests.curation.sets import KNOWN, fill, new_workspace

NGRAMS = ("--model", "ngrams", "--threshold", "0.4")


@pytest.fixture(autouse=True)
def all_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands run where only what they use here is installed."""
    monkeypatch.setattr("curation.extras.missing", lambda extra: ())


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    with new_workspace(tmp_path / "ws") as opened:
        return opened.path


def run(workspace: Path, *arguments: str, answers: str | None = None) -> Result:
    result = CliRunner().invoke(awm_studio, ["--workspace", str(workspace), *arguments], input=answers)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def facts(workspace: Path, *arguments: str) -> dict[str, object]:
    return json.loads(run(workspace, *arguments, "--json").stdout)


def test_diversity_prints_the_contractual_json(workspace: Path) -> None:
    found = facts(workspace, "diversity", *NGRAMS)
    assert {
        "items", "concepts", "curve", "vendi", "chao1", "coverage", "near_duplicates", "labels", "ari_vs_known",
    } <= set(found)  # fmt: skip
    assert (found["items"], found["concepts"], found["ari_vs_known"]) == (6, 3, 1)


def test_a_filter_that_lets_nothing_through_is_named(workspace: Path) -> None:
    with pytest.raises(UserError, match="none of 6 environments passes the filter 'tools>500'"):
        run(workspace, "diversity", *NGRAMS, "--where", "tools>500")


def test_diversity_says_it_in_words(workspace: Path) -> None:
    said = run(workspace, "diversity", *NGRAMS).stdout
    assert "concepts at 0.4" in said
    assert "domain" in said
    assert "uber" in said


def test_diversity_keeps_concepts_when_asked(workspace: Path) -> None:
    run(workspace, "diversity", *NGRAMS)
    assert {row["concept"] for row in facts(workspace, "list")["environments"]} == {None}
    run(workspace, "diversity", *NGRAMS, "--save")
    assert len({row["concept"] for row in facts(workspace, "list")["environments"]}) == 3


def test_diversity_writes_a_map(workspace: Path, tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    run(workspace, "diversity", *NGRAMS, "--map", str(tmp_path / "map.html"), "--layout", "pca")
    assert "bolt_rides" in (tmp_path / "map.html").read_text("utf-8")


def test_diversity_compares_two_sets(workspace: Path, awm_real: Path) -> None:
    found = facts(workspace, "diversity", *NGRAMS, "--against", str(awm_real))
    assert found["against"]["there"] == 5
    assert "only there" in run(workspace, "diversity", *NGRAMS, "--against", str(awm_real)).stdout


def test_judged_pairs_are_kept_and_skipped_ones_not(workspace: Path) -> None:
    result = run(workspace, "diversity", "--model", "ngrams", "--judge", "5", "--json", answers="y\ns\nn\nq\n")
    assert json.loads(result.stdout)["calibration"] is None
    judged = json.loads((workspace / "concepts.json").read_text())["pairs"]
    assert [pair["same"] for pair in judged] == [True, False]


def test_a_subset_is_made_listed_and_shown(workspace: Path) -> None:
    made = facts(workspace, "subset", "mix", "--budget", "3", *NGRAMS, "--series", "3,1")
    assert made["environments"] == {"train": 3, "test": 0, "of": 6}
    assert [row["size"] for row in made["series"]] == [1, 3]
    assert facts(workspace, "subset", "mix") == made
    assert [card["name"] for card in facts(workspace, "subset")["subsets"]] == ["mix"]
    assert "mix" in run(workspace, "subset").stdout
    assert "coverage" in run(workspace, "subset", "mix").stdout


def test_a_budget_beyond_the_set_is_said(workspace: Path) -> None:
    result = run(workspace, "subset", "mix", "--budget", "600", *NGRAMS)
    assert "only 6 environments can be picked" in result.stderr
    run(workspace, "subset", "one", "--budget", "2", "--where", "name:uber", *NGRAMS)
    result = run(workspace, "subset", "one", "--budget", "2", "--where", "name:uber", *NGRAMS, "--replace")
    assert "only 1 environment can be picked" in result.stderr


@pytest.mark.parametrize("layout", ["awm", "hf", "verl", "trl", "mcp"])
def test_a_subset_is_exported(workspace: Path, tmp_path: Path, layout: str) -> None:
    if layout in ("hf", "verl"):
        pytest.importorskip("pyarrow")
    facts(workspace, "subset", "mix", "--budget", "3", *NGRAMS)
    files = facts(workspace, "export", str(tmp_path / "out"), "--format", layout, "--subset", "mix")["files"]
    assert "subset.json" in files
    assert {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*")} == set(files)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("subset", "mix", "--budget", "3", "--where", "domian:x"), "no field domian"),
        (("subset", "none"), "no subset 'none'"),
        (("subset", "../x", "--budget", "3"), "cannot name a subset"),
        (("diversity", "--map", "map.svg"), "FILE.html or FILE.png"),
        (("subset", "mix", "--budget", "3", "--where", "domain:none"), "nothing to compare"),
        (("diversity", "--where", "nowhere"), "nothing to compare"),
        (("export", "out", "--subset", "none", "--format", "trl"), "no subset 'none'"),
    ],
)
def test_what_cannot_be_done_is_said(workspace: Path, arguments: tuple[str, ...], said: str) -> None:
    extra = NGRAMS if arguments[0] != "export" and len(arguments) > 2 else ()
    with pytest.raises(UserError, match=said):
        run(workspace, *arguments, *extra)


@pytest.mark.parametrize(
    "arguments",
    [
        ("subset", "--budget", "3"),
        ("subset", "mix", "--budget", "0"),
        ("subset", "mix", "--held-out", "0.2"),
        ("subset", "mix", "--budget", "3", "--all"),
        ("subset", "mix", "--budget", "3", "--series", "ten"),
        ("subset", "mix", "--budget", "3", "--held-out", "1"),
        ("diversity", "--view", "code"),
        ("export", "out", "uber", "--subset", "mix"),
    ],
)
def test_wrong_usage_is_refused(workspace: Path, arguments: tuple[str, ...]) -> None:
    assert run(workspace, *arguments).exit_code == 2


def test_an_empty_workspace_has_nothing(tmp_path: Path) -> None:
    Workspace.open(tmp_path / "empty", create=True).close()
    with pytest.raises(UserError, match="nothing to compare"):
        run(tmp_path / "empty", "diversity", *NGRAMS)


def test_what_is_not_installed_is_named_with_its_extra(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curation.extras.missing", lambda extra: ("umap",))
    with pytest.raises(UserError, match=r"umap, which is not installed: make install-all"):
        run(workspace, "diversity")


def test_near_duplicates_are_decided_from_the_command_line_too(workspace: Path) -> None:
    with Workspace.open(workspace) as opened:
        fill(opened, [("Cabbie", "rides", KNOWN[0][2].replace("Uber", "Cabbie"), KNOWN[0][3])])
    found = facts(workspace, "diversity", *NGRAMS, "--decide", "merge", "uber", "cabbie")
    decisions = {(pair["a"], pair["b"]): pair["decision"] for pair in found["near_duplicates"]}
    assert decisions["cabbie", "uber"] == "merge"
    assert set(decisions.values()) == {"merge", None}
    rows = {row["name"]: row["aside"] for row in facts(workspace, "list")["environments"]}
    assert {name for name, aside in rows.items() if aside} == {"cabbie"}
    assert "merge" in run(workspace, "diversity", *NGRAMS).stdout
    found = facts(workspace, "diversity", *NGRAMS, "--decide", "forget", "uber", "cabbie")
    assert {pair["decision"] for pair in found["near_duplicates"]} == {None}
    with pytest.raises(UserError, match="Did you mean uber"):
        run(workspace, "diversity", *NGRAMS, "--decide", "keep", "ubr", "lyft")


def test_a_decision_about_two_that_are_not_alike_is_kept_and_told(workspace: Path) -> None:
    told = run(workspace, "diversity", *NGRAMS, "--decide", "merge", "biblio", "uber").stderr
    assert "biblio and uber are no near-duplicates (similarity 0." in told
    assert (
        "no near-duplicates" not in run(workspace, "diversity", *NGRAMS, "--decide", "forget", "biblio", "uber").stderr
    )


def test_a_measurement_that_was_interrupted_can_be_gone_on_with(workspace: Path) -> None:
    run(workspace, "diversity", *NGRAMS, "--keep", "--layout", "pca", "--view", "tasks")
    with Workspace.open(workspace) as opened:
        [done] = opened.catalog.runs()
    command = going_on(done)
    assert command is not None
    run(workspace, *command)
    landscape = kept_landscape(workspace)
    assert landscape is not None
    assert (landscape.survey.view, landscape.survey.threshold) == ("tasks", 0.4)


def runs(workspace: Path) -> list[tuple[str, str]]:
    with Workspace.open(workspace) as opened:
        return [(run.kind, run.state) for run in opened.catalog.runs()]


def test_what_takes_long_is_a_run_that_the_studio_shows(workspace: Path, tmp_path: Path) -> None:
    run(workspace, "diversity", *NGRAMS)
    assert runs(workspace) == []
    run(workspace, "diversity", *NGRAMS, "--keep", "--layout", "pca")
    facts(workspace, "subset", "mix", "--budget", "3", *NGRAMS)
    facts(workspace, "export", str(tmp_path / "out"), "--format", "trl", "--subset", "mix")
    assert runs(workspace) == [("export", "done"), ("subset", "done"), ("diversity", "done")]
    landscape = kept_landscape(workspace)
    assert landscape is not None
    assert (landscape.survey.threshold, len(landscape.names)) == (0.4, 6)


def test_what_was_refused_at_once_is_no_run_and_what_failed_says_why(workspace: Path) -> None:
    for arguments in (("subset", "a b", "--budget", "3"), ("subset", "mix", "--budget", "3", "--where", "domian:x")):
        with pytest.raises(UserError):
            run(workspace, *arguments, *NGRAMS)
    assert runs(workspace) == []
    with pytest.raises(UserError):
        run(workspace, "subset", "mix", "--budget", "3", "--where", "domain:none", *NGRAMS)
    with Workspace.open(workspace) as opened:
        [failed] = opened.catalog.runs()
    assert failed.state == "failed"
    assert "nothing to compare" in failed.result["error"]


def test_neither_command_imports_torch(workspace: Path) -> None:
    program = (
        "import sys; from studio.cli import awm_studio\n"
        f"awm_studio(['-w', {str(workspace)!r}, 'diversity', '--model', 'ngrams', '--json'], standalone_mode=False)\n"
        "print([name for name in ('torch', 'transformers', 'umap', 'numba') if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "arguments",
    [
        ("diversity", "--threshold", "nan"),
        ("subset", "mix", "--budget", "4", "--held-out", "nan"),
        ("subset", "mix", "--budget", "4", "--distinct", "nan"),
        ("rollout", "--policy", "noop", "--time-limit", "inf"),
    ],
    ids=" ".join,
)
def test_what_is_no_finite_number_is_refused(workspace: Path, arguments: tuple[str, ...]) -> None:
    refused = run(workspace, *arguments)
    assert refused.exit_code == 2
    assert "is not a finite number" in refused.output
