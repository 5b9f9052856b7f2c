"""Published figures beside one's own: only where suite, version, tasks and settings are the same."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipeline.errors import UserError


class Figure(BaseModel):
    """A figure somebody published, as a section `[[figure]]` of a TOML file.

    `score` is a share between 0 and 1, of all tasks of `preset` or those of one `domain`. `settings` are what a report
    of ours lists: what is left out there is not known, and makes the figure incomparable.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    source: str = Field(min_length=1)
    """Where it is published, for example "arXiv 2602.10090, table 3"."""
    suite: str
    version: str
    preset: str = "paper"
    domain: str | None = None
    score: float = Field(ge=0, le=1, allow_inf_nan=False)
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Beside:
    """A figure beside a report: what differs, or our score where nothing does."""

    figure: Figure
    differs: tuple[str, ...]
    ours: float | None = None
    interval: tuple[float, float] | None = None


def read_figures(path: Path) -> list[Figure]:
    """The figures in a file. Raises UserError where it cannot be read or a field is missing or wrong."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
        return [Figure.model_validate(each) for each in document.get("figure", [])]
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not TOML: {error}.") from None
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))
        raise UserError(f"{path}: {where or 'a figure'}: {fault['msg'][:1].lower()}{fault['msg'][1:]}.") from None


def beside(document: Mapping[str, Any], figure: Figure) -> Beside:
    """A figure beside a report. Ours is told only where everything the two rest on is the same."""
    ours = {"suite": document["suite"], "version": document["version"], "preset": document.get("preset")}
    theirs = {"suite": figure.suite, "version": figure.version, "preset": figure.preset}
    settings = document.get("settings", {})
    ours |= settings
    theirs |= {name: figure.settings.get(name, "not said") for name in {**settings, **figure.settings}}
    differs = [
        f"{name}: {theirs[name]} there, {ours.get(name, 'not said')} here"
        for name in theirs
        if theirs[name] != ours.get(name, "not said")
    ]
    if document["state"] != "done":
        differs.append(f"ours is {document['state']}")
    group = _group(document, figure.domain)
    if group is None or group["score"] is None:
        differs.append(f"ours has no score for {figure.domain}")
    if differs or group is None:
        return Beside(figure, tuple(differs))
    return Beside(figure, (), group["score"], tuple(group["interval"]))


def _group(document: Mapping[str, Any], domain: str | None) -> Mapping[str, Any] | None:
    if domain is None:
        return document
    groups = [group for groups in document["by"].values() for group in groups]
    return next((group for group in groups if group["value"] == domain), None)
