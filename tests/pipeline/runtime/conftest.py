"""What tests of the runtime share: the real environments."""

from __future__ import annotations

from pathlib import Path

import pytest

from curation.importers import import_awm
from pipeline.catalog import Catalog
from pipeline.model import Environment


@pytest.fixture(scope="session")
def real(awm_real: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Environment]:
    """Five environments of a real run of the upstream pipeline, with fifty verifiers."""
    with Catalog.open(tmp_path_factory.mktemp("real") / "catalog.db") as catalog:
        import_awm(catalog, awm_real)
        return list(catalog.environments())
