"""Which model is asked: profiles in the settings, the environment, the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import settings as settings_file
from pipeline.errors import UserError
from pipeline.llm.profiles import Prices, Profile, choose, from_environment
from pipeline.settings import Settings


@pytest.fixture(autouse=True)
def no_model_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWM_MODEL", "AWM_BASE_URL", "OPENAI_BASE_URL", "AWM_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"base_url": "localhost:8000"}, "http"),
        ({"base_url": "http://me:secret@host/v1"}, "api_key_env"),
        ({"params": {"stream": False}}, "stream"),
        ({"concurrency": 0}, "concurrency"),
        ({"api_key": "sk-secret"}, "api_key"),
    ],
)
def test_a_profile_says_what_is_wrong_with_it(fields: dict, told: str):
    with pytest.raises(ValueError, match=told):
        Profile(model="m", **fields)


def test_a_profile_can_come_from_the_environment():
    environ = {"AWM_MODEL": "m", "OPENAI_BASE_URL": "http://a/v1", "AWM_API_KEY": "k"}
    profile = from_environment(environ)
    assert profile is not None
    assert (profile.model, profile.base_url, profile.api_key_env) == ("m", "http://a/v1", "AWM_API_KEY")
    assert from_environment({"AWM_BASE_URL": "http://a/v1"}) is None


def test_profiles_live_in_the_settings_file(tmp_path: Path):
    path = tmp_path / "config.toml"
    path.write_text(
        '[profiles.big]\nmodel = "m1"\nbase_url = "http://a/v1"\nprices = { input = 1, output = 8.5 }\n'
        '[profiles.small]\nmodel = "m2"\n[stages]\ntasks = "small"\n'
    )
    settings = settings_file.load(path)
    assert settings.profiles["big"].prices == Prices(input=1, output=8.5)
    assert settings.stages == {"tasks": "small"}
    settings_file.save(settings, path)
    assert settings_file.load(path) == settings
    assert "concurrency" not in path.read_text()  # only what the person chose


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[profiles.a]\nmodel = "m"\napi_key = "sk-1"\n', "profiles.a.api_key"),
        ('[profiles.a]\nbase_url = "http://a"\n', "profiles.a.model"),
        ('[stages]\ncooking = "a"\n', "cooking"),
    ],
)
def test_a_wrong_profile_is_named_by_its_place(tmp_path: Path, text: str, told: str):
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=told):
        settings_file.load(path)


def test_settings_without_profiles_are_saved_without_them(tmp_path: Path):
    path = settings_file.save(Settings(memory_mb=512), tmp_path / "config.toml")
    assert path.read_text().strip() == "memory_mb = 512"


PROFILES = {
    "default": Profile(model="big", base_url="http://a/v1", prices=Prices(input=1, output=2)),
    "small": Profile(model="little", base_url="http://b/v1"),
}


def test_the_usual_profile_is_the_default_one():
    assert choose(PROFILES, None).model == "big"
    assert choose(PROFILES, "small").model == "little"


def test_a_model_on_the_command_line_is_a_profile_or_replaces_the_model():
    assert choose(PROFILES, None, model="small") is PROFILES["small"]
    other = choose(PROFILES, None, model="other")
    assert (other.model, other.base_url, other.prices) == ("other", "http://a/v1", None)  # its price is not known
    assert choose({}, None, model="m", base_url="http://c/v1").base_url == "http://c/v1"


@pytest.mark.parametrize(("name", "told"), [(None, "No model is set up"), ("big", "no model profile 'big'")])
def test_no_model_at_all_says_how_to_name_one(name: str | None, told: str):
    with pytest.raises(UserError, match=told):
        choose({}, name)
