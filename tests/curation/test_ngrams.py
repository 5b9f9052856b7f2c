"""Character n-gram vectors, against scikit-learn's."""

from __future__ import annotations

import pytest

pytest.importorskip("numpy")
pytest.importorskip("sklearn.feature_extraction.text")

import numpy as np
from sklearn.feature_extraction import text

from curation.ngrams import ngram_vectors
from tests.curation.sets import KNOWN

TEXTS = [f"{description} {' '.join(tasks)}" for _, _, description, tasks in KNOWN]


def test_cosines_are_those_of_scikit_learn_up_to_the_projection() -> None:
    exact = text.TfidfVectorizer(analyzer="char", ngram_range=(3, 5), sublinear_tf=True).fit_transform(TEXTS)
    expected = (exact @ exact.T).toarray()
    wide = ngram_vectors(TEXTS, width=1 << 18)
    assert np.abs(wide @ wide.T - expected).max() < 0.02
    usual = ngram_vectors(TEXTS)
    assert np.abs(usual @ usual.T - expected).max() < 0.1


def test_the_same_text_is_the_same_vector_and_an_empty_one_is_none() -> None:
    vectors = ngram_vectors(["one text", "One  text", "another", "", "  "])
    assert np.allclose(vectors[0], vectors[1])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1, 0, 0], abs=1e-6)


@pytest.mark.parametrize("odd", ["日本語の図書館", "a", "\ud800 half a pair", "\0"])
def test_any_text_has_a_vector(odd: str) -> None:
    assert np.isfinite(ngram_vectors([odd, "plain"])).all()


def test_texts_are_read_in_blocks_without_a_seam() -> None:
    texts = [f"{TEXTS[number % len(TEXTS)]} {number}" for number in range(600)]
    vectors = ngram_vectors(texts)
    assert vectors.shape == (600, 2048)
    assert np.allclose(ngram_vectors(texts)[::-1], ngram_vectors(texts[::-1]), atol=1e-5)


def test_no_texts_give_no_vectors() -> None:
    assert ngram_vectors([]).shape == (0, 2048)
