"""Made-up archives of reviews and counts of topics, and the plain counting that tests compare with."""

import io
import tarfile
from collections import Counter

import numpy as np
import scipy.sparse as sp

from amptutorial.bias import drop_empty
from amptutorial.corpus import Corpus, load_movie_reviews

OFFICIAL = "aclImdb_v1.tar.gz"
SMALL = {"n_documents": 5, "min_df": 1, "max_df": 1.0, "stop_words": None, "lemmatize": False}


def member(name, text="", **fields):
    info = tarfile.TarInfo(name)
    data = text if isinstance(text, bytes) else text.encode()
    info.size = len(data)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, data


def make_archive(path, members):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return path


def review_texts(k=12):
    """Reviews whose words are `shared` and a word of each review's own, twice."""
    return {
        f"aclImdb/{part}/{side}/{i}_{rating}.txt": f"Shared {part}{chr(97 + i) * 3}{side} {part}{chr(97 + i) * 3}{side}"
        for part in ("train", "test")
        for side, rating in (("pos", 9), ("neg", 2))
        for i in range(k // 4)
    }


def small_archive(path):
    return make_archive(path, [member(name, text) for name, text in review_texts().items()])


def one_review(path, word):
    return make_archive(path, [member("aclImdb/test/pos/0_9.txt", word)])


def loaded_word(path=None):
    """Return the vocabulary of an archive made by `one_review`."""
    return load_movie_reviews(path, **{**SMALL, "n_documents": 1}).vocabulary.tolist()


def cached_files(tmp_path):
    return sorted((tmp_path / "cache").iterdir())


def same(one, other):
    return (
        (one.counts != other.counts).nnz == 0
        and one.vocabulary.tolist() == other.vocabulary.tolist()
        and one.names.tolist() == other.names.tolist()
        and one.labels.tolist() == other.labels.tolist()
        and (one.n_twins, one.n_empty) == (other.n_twins, other.n_empty)
    )


def split(text):
    """Words of a text without tags, without regular expressions."""
    return [w for w in "".join(c if c.isalpha() else " " for c in text.lower()).split() if len(w) > 1]


def as_counters(corpus):
    """Return one Counter a document."""
    words = corpus.vocabulary.tolist()
    dense = corpus.counts.toarray().tolist()
    return [Counter({word: z for word, z in zip(words, row, strict=True) if z}) for row in dense]


def topics(rng, m=200, n=150, per_pair=1.0):
    """Return a corpus of three topics, M_ij of order one, labelled by the first coordinate of U, and its truth."""
    U, V = (1.3 * m**0.25 * rng.choice([-1.0, 0.0, 1.0], (size, 2)) for size in (m, n))
    r_u, r_v = rng.uniform(0.5, 1.5, m), per_pair * rng.uniform(0.5, 1.5, n)
    Z = sp.csr_array(rng.poisson(r_u[:, None] * r_v * np.exp(U @ V.T / np.sqrt(m))))
    Z, rows, columns = drop_empty(Z)
    vocabulary = np.array([f"w{j:03d}" for j in columns])
    return Corpus(Z, vocabulary, (U[rows, 0] > 0).astype(int)), U[rows], V[columns]
