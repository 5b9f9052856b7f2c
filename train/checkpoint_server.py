"""Serves a model from a folder to this machine as an OpenAI-compatible server does: for checkpoints, one at a time.

Requests that wait while the model generates are answered together, in one batch. Meant for small models and trying
out; for large ones vLLM's server is much faster, and everything here takes its address instead.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from train.config import Model
from train.local_server import local_server
from train.policy_model import load_model, load_tokenizer

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

AT_ONCE = 64
"""Requests in a batch at most."""

Sampling = tuple[float, float, int, int]
"""Temperature, top-p, top-k (0: all tokens) and the most tokens: what requests of one batch share."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that waits for its batch."""

    prompt: list[int]
    sampling: Sampling
    answer: asyncio.Future[list[int]]
    loop: asyncio.AbstractEventLoop


@contextmanager
def serving_checkpoint(folder: Path, *, threads: int | None = None) -> Generator[str]:
    """Serve the model in a folder; yields the base_url. `threads` are PyTorch's; None: its own choice.

    Raises UserError where the model cannot be loaded.
    """
    with local_server(_app(Answers(folder, threads))) as address:
        yield f"{address}/v1"


class Answers:
    """A loaded model that answers requests in batches, in a thread of its own."""

    def __init__(self, folder: Path, threads: int | None) -> None:
        import torch
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
        if threads is not None:
            torch.set_num_threads(threads)
        self.tokenizer = load_tokenizer(folder)
        self._model = load_model(folder, Model(name=str(folder), dtype="auto")).eval()
        self._model.to("cuda" if torch.cuda.is_available() else "cpu")
        self.longest = int(getattr(self._model.config, "max_position_embeddings", 0)) or None
        self._waiting: queue.Queue[Asked | None] = queue.Queue()
        self._thread = threading.Thread(target=self._work, daemon=True, name="awm-model")

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Answer no more."""
        self._waiting.put(None)
        self._thread.join()

    async def ask(self, prompt: list[int], sampling: Sampling) -> list[int]:
        """The ids that follow a prompt, the end token included if the model ended."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[int]] = loop.create_future()
        self._waiting.put(Asked(prompt, sampling, answer, loop))
        return await answer

    def _work(self) -> None:
        while (first := self._waiting.get()) is not None:
            batch = [first]
            while len(batch) < AT_ONCE and not self._waiting.empty():
                further = self._waiting.get()
                if further is None:
                    self._waiting.put(None)
                    break
                batch.append(further)
            for sampling in {asked.sampling for asked in batch}:
                self._answer([asked for asked in batch if asked.sampling == sampling], sampling)

    def _answer(self, batch: Sequence[Asked], sampling: Sampling) -> None:
        try:
            said = self._generate([asked.prompt for asked in batch], sampling)
        except Exception as error:  # whatever PyTorch raises belongs to the requests, not to the server
            for asked in batch:
                asked.loop.call_soon_threadsafe(_fail, asked.answer, error)
            return
        for asked, ids in zip(batch, said, strict=True):
            asked.loop.call_soon_threadsafe(_give, asked.answer, ids)

    def _generate(self, prompts: list[list[int]], sampling: Sampling) -> list[list[int]]:
        import torch

        temperature, top_p, top_k, most = sampling
        padded = self.tokenizer.pad({"input_ids": prompts}, padding_side="left", return_tensors="pt")
        padded = padded.to(self._model.device)
        chosen: dict[str, Any] = {"do_sample": False}
        if temperature > 0:
            chosen = {"do_sample": True, "temperature": temperature, "top_p": top_p, "top_k": top_k}
        with torch.inference_mode():
            out = self._model.generate(
                **padded, max_new_tokens=most, pad_token_id=self.tokenizer.pad_token_id, **chosen
            )
        end, width = self.tokenizer.eos_token_id, padded["input_ids"].shape[1]
        return [_until(ids, end) for ids in out[:, width:].tolist()]


def _until(ids: list[int], end: int) -> list[int]:
    return ids[: ids.index(end) + 1] if end in ids else ids


def _give(answer: asyncio.Future[list[int]], ids: list[int]) -> None:
    if not answer.done():  # the client may have gone
        answer.set_result(ids)


def _fail(answer: asyncio.Future[list[int]], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)


def _app(answers: Answers) -> Any:
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    def refused(status: int, message: str) -> Response:
        return JSONResponse({"error": {"message": message, "type": "error"}}, status)

    async def complete(request: Request) -> Response:
        body = await request.json()
        try:
            prompt: list[int] = answers.tokenizer.apply_chat_template(
                [_message(message) for message in body["messages"]],
                tools=body.get("tools"),
                add_generation_prompt=True,
                tokenize=True,
                return_dict=False,
            )
        except Exception as error:  # a template of the model's own, which may refuse anything
            return refused(400, f"The chat template refuses these messages: {error}")
        most = int(body.get("max_completion_tokens") or body.get("max_tokens") or 1024)
        if answers.longest is not None and len(prompt) + most > answers.longest:
            return refused(
                400, f"maximum context length is {answers.longest} tokens; {len(prompt)} + {most} were asked"
            )
        given = (body.get("temperature"), body.get("top_p"), body.get("top_k"))
        temperature, top_p, top_k = (
            usual if value is None else value for value, usual in zip(given, (1.0, 1.0, 0), strict=True)
        )
        try:
            ids = await answers.ask(prompt, (float(temperature), float(top_p), int(top_k), most))
        except Exception as error:
            return refused(500, f"The model failed: {type(error).__name__}: {error}")
        return JSONResponse(_completion(body, answers.tokenizer, prompt, ids))

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncGenerator[None]:
        answers.start()
        yield
        answers.stop()

    return Starlette(routes=[Route("/v1/chat/completions", complete, methods=["POST"])], lifespan=lifespan)


def _message(message: dict[str, Any]) -> dict[str, Any]:
    """A message as chat templates take it: content is text."""
    return {**message, "content": message.get("content") or ""}


def _completion(body: dict[str, Any], tokenizer: Any, prompt: list[int], ids: list[int]) -> dict[str, Any]:
    ended = bool(ids) and ids[-1] == tokenizer.eos_token_id
    text = tokenizer.decode(ids[:-1] if ended else ids, clean_up_tokenization_spaces=False)
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop" if ended else "length",
    }
    document: dict[str, Any] = {
        "id": "local",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": body.get("model", ""),
        "choices": [choice],
        "usage": {
            "prompt_tokens": len(prompt),
            "completion_tokens": len(ids),
            "total_tokens": len(prompt) + len(ids),
        },
    }
    if body.get("return_token_ids"):
        document["prompt_token_ids"] = prompt
        choice["token_ids"] = ids
    return document
