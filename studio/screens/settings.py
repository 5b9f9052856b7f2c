"""Settings: the settings file as a form."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError
from textual import on
from textual.containers import VerticalGroup, VerticalScroll
from textual.widget import Widget
from textual.widgets import Input, Select, Static

from pipeline import settings as settings_file
from pipeline.errors import UserError
from pipeline.llm.profiles import Profile
from pipeline.settings import Settings
from studio.actions import bindings, keymap_path
from studio.editor import edit
from studio.screens.frame import Framed

MODEL_FIELDS = ("model", "base_url", "api_key_env")
"""What is asked about the model named `default`; the rest of a profile is for the file."""


class SettingsScreen(Framed):
    """One field a setting, drawn from the settings' own descriptions; ^s writes the file."""

    MODE = "settings"
    ABOUT = (
        "What is kept in the settings file. ^s saves; an empty field has its default. F4 opens the file itself, where "
        "further models can be named. Limits hold for environments that are loaded from then on."
    )
    BINDINGS = bindings("settings")

    def body(self) -> Iterable[Widget]:
        """Where the files are, the settings, the model."""
        chosen = self.studio.settings
        default = chosen.profiles.get("default")
        with VerticalScroll(id="settings"):
            yield Static(
                f"Settings file  {settings_file.settings_path()}\nKeymap file    {keymap_path()}",
                classes="hint",
                markup=False,
            )
            yield Static("This machine", classes="heading")
            for name in _simple_fields(Settings):
                yield from _setting("", name, Settings, getattr(chosen, name))
            yield Static("Model that writes environments (profile “default”)", classes="heading")
            for name in MODEL_FIELDS:
                yield from _setting("model-", name, Profile, getattr(default, name) if default else None)
            yield Static(_key_state(default), id="key-state", classes="hint", markup=False)

    @on(Select.Changed, "#theme")
    def _try_theme(self, event: Select.Changed) -> None:
        self.studio.wear(str(event.value))

    def action_save(self) -> None:
        """Write the form to the file, or say which field is wrong."""
        for problem in self.query(".setting-problem"):
            problem.display = False
        old = self.studio.settings
        kept = {name: getattr(old, name) for name in Settings.model_fields if name not in _simple_fields(Settings)}
        try:
            kept["profiles"] = self._profiles(old.profiles)
            chosen = Settings.model_validate({**kept, **self._typed("", _simple_fields(Settings), Settings)})
            path = settings_file.save(chosen)
        except ValidationError as error:
            self._explain(error)
            return
        except UserError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        self.studio.settings = chosen
        self.query_one("#key-state", Static).update(_key_state(chosen.profiles.get("default")))
        self.notify(f"Saved {path}", markup=False)

    def action_edit_file(self) -> None:
        """Open the file in $EDITOR and read it again."""
        path = settings_file.settings_path()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            edit(self.app, path)
            self.studio.settings = settings_file.load()
        except (UserError, OSError) as error:
            self.notify(str(error), severity="error", timeout=12, markup=False)
            return
        self.refresh(recompose=True)

    def _profiles(self, profiles: Mapping[str, Profile]) -> dict[str, Profile]:
        """The profiles with `default` as the form has it; no model named means no such profile."""
        typed = self._typed("model-", MODEL_FIELDS, Profile)
        others = {name: profile for name, profile in profiles.items() if name != "default"}
        if not typed.get("model"):
            return others
        before = profiles["default"].model_dump(exclude_unset=True) if "default" in profiles else {}
        rest = {key: value for key, value in before.items() if key not in MODEL_FIELDS}
        return {"default": Profile.model_validate({**rest, **typed}), **others}

    def _typed(self, prefix: str, names: Iterable[str], model: type[BaseModel]) -> dict[str, Any]:
        values = {}
        for name in names:
            editor = self.query_one(f"#{prefix}{name}")
            assert isinstance(editor, (Input, Select))
            if isinstance(editor.value, str) and editor.value.strip():
                values[name] = _read(editor.value.strip(), model.model_fields[name].annotation)
        return values

    def _explain(self, error: ValidationError) -> None:
        prefix = "model-" if error.title == Profile.__name__ else ""
        for fault in error.errors():
            name = str(fault["loc"][0])
            problem = self.query_one(f"#{prefix}{name}-problem", Static)
            problem.update(f"✗ {fault['msg']}")
            problem.display = True
            self.query_one(f"#{prefix}{name}").focus()


def _simple_fields(model: type[BaseModel]) -> list[str]:
    """The settings that one field of a form can hold."""
    return [
        name for name, field in model.model_fields.items() if _choices(field.annotation) or _scalar(field.annotation)
    ]


def _choices(annotation: Any) -> tuple[str, ...]:
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _scalar(annotation: Any) -> type | None:
    """str, int or float, also where it may be None."""
    for kind in (str, int, float):
        if annotation is kind or annotation == (kind | None):
            return kind
    return None


def _setting(prefix: str, name: str, model: type[BaseModel], value: Any) -> Iterable[Widget]:
    field = model.model_fields[name]
    default = "" if field.is_required() or field.default_factory else field.default
    with VerticalGroup(classes="setting"):
        yield Static(name, classes="setting-name")
        if choices := _choices(field.annotation):
            yield Select(
                [(choice, choice) for choice in choices],
                value=value or default,
                allow_blank=False,
                id=prefix + name,
                compact=True,
            )
        else:
            shown = "" if value in (None, default) else str(value)
            yield Input(shown, placeholder=str(default or ""), id=prefix + name, compact=True)
        yield Static(field.description or "", classes="hint", markup=False)
        yield Static("", id=f"{prefix}{name}-problem", classes="setting-problem", markup=False)


def _read(text: str, annotation: Any) -> Any:
    """The text as the setting's type; what is not one stays text, which the settings then refuse with a reason."""
    kind = _scalar(annotation)
    try:
        return kind(text) if kind else text
    except ValueError:
        return text


def _key_state(profile: Profile | None) -> str:
    if profile is None:
        return "No model is set up; environments are made from the built-in domains."
    if not profile.api_key_env:
        return "No key is sent to this server."
    if profile.api_key_env in os.environ:
        return f"✓ {profile.api_key_env} is set."
    return f"✗ {profile.api_key_env} is not set in the shell that started the studio: export it there."
