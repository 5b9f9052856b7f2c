"""What a person has chosen for this machine, kept in one TOML file that may be edited by hand."""

from __future__ import annotations

import difflib
import os
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_serializer

from pipeline.errors import UserError
from pipeline.llm.profiles import Profile
from pipeline.places import named_place


class Settings(BaseModel):
    """The settings, each with its unit and default; what is not in the file has its default."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    database_url: str | None = Field(
        None, description="SQLAlchemy URL of a catalog kept elsewhere than in the workspace folder."
    )
    worker_python: str | None = Field(
        None,
        description="Interpreter that runs generated code [default: the one that runs awm-studio]. The AWM release "
        "was written for Python 3.12.",
    )
    call_timeout_s: float = Field(10.0, gt=0, description="Longest time for one tool call, in seconds.")
    memory_mb: int = Field(1024, ge=128, description="Most memory for one environment's worker, in MB.")
    theme: Literal["auto", "dark", "light", "high-contrast", "colour-blind", "terminal"] = Field(
        "auto",
        description="Colours of the studio; auto follows the terminal's background, terminal uses its own 16 colours.",
    )
    workers: int = Field(
        default_factory=lambda: os.cpu_count() or 1,
        ge=1,
        description="How many environments to work on at once [default: the number of processors].",
    )
    profiles: dict[str, Profile] = Field(
        default_factory=dict,
        description="Models behind OpenAI-compatible servers, one section [profiles.NAME] each; keys are named by "
        "environment variable (api_key_env), never written here.",
    )
    stages: dict[Literal["scenario", "tasks", "database", "interface", "verification", "embedding"], str] = Field(
        default_factory=dict,
        description="The profile that a stage of the synthesis uses where it is not the one named default.",
    )

    @field_serializer("profiles")
    def _as_chosen(self, profiles: dict[str, Profile]) -> dict[str, Any]:
        return {name: profile.model_dump(exclude_defaults=True) for name, profile in profiles.items()}


def settings_path() -> Path:
    """Where the settings are kept: `$AWM_CONFIG`, or `config.toml` in the user's configuration folder."""
    if chosen := os.environ.get("AWM_CONFIG"):
        return named_place(chosen)
    from platformdirs import user_config_path

    return user_config_path("awm-studio") / "config.toml"


def load(path: Path | None = None) -> Settings:
    """The settings in a file (by default `settings_path()`); a file that is not there means the defaults.

    Raises UserError where the file cannot be read, is not TOML, or has an unknown key or a wrong value.
    """
    path = path or settings_path()
    try:
        values = tomllib.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise UserError(f"The settings {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UserError(f"The settings {path} are not UTF-8 text.") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"The settings {path} are not TOML: {error}.") from None
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise UserError(f"The settings {path}: {_first_fault(error)}") from None


def save(settings: Settings, path: Path | None = None) -> Path:
    """Write what differs from the defaults (and what the file already names), keeping its comments. Returns the path.

    Raises UserError where the file cannot be read as TOML or cannot be written.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    path = path or settings_path()
    try:
        document = tomlkit.parse(path.read_text("utf-8-sig")) if path.exists() else tomlkit.document()
        defaults = Settings().model_dump()
        for key, value in settings.model_dump().items():
            if value is None:
                document.pop(key, None)
            elif value != defaults[key] or key in document:
                document[key] = value
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{os.getpid()}.new")
        draft.write_text(tomlkit.dumps(document), "utf-8")
        draft.replace(path)
    except OSError as error:
        raise UserError(f"The settings {path} cannot be written: {error.strerror}.") from None
    except TOMLKitError as error:
        raise UserError(f"The settings {path} are not TOML: {error}.") from None
    return path


def _first_fault(error: ValidationError) -> str:
    fault = error.errors()[0]
    key = ".".join(map(str, fault["loc"]))
    if fault["type"] == "extra_forbidden":
        there = Profile.model_fields if fault["loc"][0] == "profiles" else Settings.model_fields
        close = difflib.get_close_matches(str(fault["loc"][-1]), there, n=1)
        hint = f"Did you mean {close[0]}?" if close else f"There are {', '.join(there)}."
        return f"there is no setting {key!r}. {hint}"
    return f"{key} is {fault['input']!r}; {fault['msg'][:1].lower()}{fault['msg'][1:]}."
