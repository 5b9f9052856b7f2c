"""The process that imports torch and umap, so that the studio and the command line never do.

Run as `python -m curation.model_process`: one JSON line in (what to do), then requests; every answer is a JSON line
that announces rows and columns, followed by that many float32 values, or a JSON line with an `error`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import IO, Any

import numpy as np


def main() -> None:
    """Answer requests from stdin on stdout until it ends. What libraries print goes to stderr."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        job = json.loads(sys.stdin.buffer.readline())
        for matrix in JOBS[job["do"]](job, sys.stdin.buffer):
            _answer(answers, matrix)
    except Exception as error:
        answers.write(json.dumps({"error": f"{type(error).__name__}: {error}"}).encode() + b"\n")
    finally:
        answers.close()


def _answer(answers: IO[bytes], matrix: np.ndarray) -> None:
    rows, columns = matrix.shape
    answers.write(json.dumps({"rows": rows, "columns": columns}).encode() + b"\n")
    answers.write(np.ascontiguousarray(matrix, dtype=np.float32).tobytes())
    answers.flush()


def embed(job: dict[str, Any], requests: IO[bytes]) -> Iterator[np.ndarray]:
    """Unit sentence embeddings by `model` (a folder or a Hugging Face name): a JSON list of texts a line in."""
    import torch
    from sentence_transformers import SentenceTransformer

    if job["threads"]:
        torch.set_num_threads(job["threads"])
    model = SentenceTransformer(job["model"])
    for line in requests:
        yield model.encode(json.loads(line), normalize_embeddings=True, show_progress_bar=False)


def layout(job: dict[str, Any], requests: IO[bytes]) -> Iterator[np.ndarray]:
    """Two coordinates a row by UMAP (McInnes et al. 2018, arXiv 1802.03426) over cosine distances of `rows` vectors."""
    import umap

    size = job["rows"] * job["columns"] * 4
    vectors = np.frombuffer(requests.read(size), dtype=np.float32).reshape(job["rows"], job["columns"])
    neighbours = min(15, len(vectors) - 1)
    reducer = umap.UMAP(n_neighbors=neighbours, min_dist=0.1, metric="cosine", random_state=job["seed"], n_jobs=1)
    yield reducer.fit_transform(vectors)


JOBS = {"embed": embed, "layout": layout}

if __name__ == "__main__":
    main()
