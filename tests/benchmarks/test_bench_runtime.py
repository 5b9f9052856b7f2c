"""What `awm-studio bench runtime` measures, on environments made by rules and on the real ones where they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curation.importers import import_awm
from pipeline.blueprints.synthesis import Request, start, synthesise
from pipeline.catalog import Catalog
from pipeline.runtime.benchmark import measure

pytestmark = pytest.mark.benchmark


def test_figures_of_environments_made_by_rules(tmp_path: Path) -> None:
    with Catalog.open(tmp_path / "catalog.db") as catalog:
        request = Request(count=5, seed=7)
        assert len(list(synthesise(catalog, request, start(catalog, request)))) == 5
        print(json.dumps(measure(list(catalog.environments())), indent=2))


def test_figures_of_real_environments(tmp_path: Path, awm_real: Path) -> None:
    with Catalog.open(tmp_path / "catalog.db") as catalog:
        import_awm(catalog, awm_real)
        print(json.dumps(measure(list(catalog.environments())), indent=2))
