"""Write, once for each release, small files of all formats that users keep: tests/formats/VERSION.

    python -m studies.formats

`tests/test_formats.py` reads them with every later version. Each binary file has the same numbers beside it as text.
"""

import json
import pickle
import shutil
import subprocess
import sys
import tempfile
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas
import yaml
from distributed import Client, LocalCluster

from amptutorial import AMPEmbedding, Ridge, __version__
from amptutorial.cluster.amp import sharded_amp
from amptutorial.cluster.embedding import sharded_embedding
from amptutorial.cluster.shards import write_shards
from amptutorial.corpus import Corpus
from amptutorial.corpus.loaders import _to_arrays
from amptutorial.corpus.store import save
from amptutorial.paper.reproduce import RESULTS

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests/formats"
ITERATIONS = 2  # of AMP, after which its checkpoint is kept
PARAMETERS = {"n_components": 2, "n_iter": 3, "random_state": 0}  # of the model


def counts():
    """Return a frame of counts (60, 40) with two directions."""
    rng = np.random.default_rng(54)
    M = 0.7 * rng.standard_normal((60, 2)) @ rng.standard_normal((2, 40))
    names = [f"text{i}" for i in range(60)], [f"word{j}" for j in range(40)]
    return pandas.DataFrame(rng.poisson(2 * np.exp(M)), *names)


def write_checkpoints(shards, folder):
    """Write those of two runs on shards: the next release goes on from them."""
    B0 = np.loadtxt(folder.parent / "start.txt")
    with LocalCluster(1, processes=False, dashboard_address=":0") as workers, Client(workers) as client:
        sharded_amp(shards, Ridge(1.0), B0=B0, n_iter=ITERATIONS, checkpoints=folder / "amp", client=client)
        model = AMPEmbedding(**PARAMETERS)
        sharded_embedding(shards, model, checkpoints=folder / "embedding", client=client)


def write_gradebook(folder):
    """Grade a class of two, one with a solution, the other with the starter."""
    with tempfile.TemporaryDirectory() as name:
        submissions = Path(name)
        for student, place in {"ada": "solutions", "bob": "assignments"}.items():
            shutil.copy(ROOT / "course" / place / "01_ridge/denoiser.py", submissions / f"{student}.py")
        grader = [sys.executable, "-m", "amptutorial_course.grading", submissions, "--assignment", "1"]
        out = ["--out", folder / "grades.csv", "--config", folder / "grading.yml"]
        subprocess.run([*grader, *out, "--isolate", "none"], check=True)
    shutil.rmtree(folder / "grades_files/feedback")  # pages, which nothing reads


def main():
    """Write the folder of this version."""
    folder, table = FOLDER / __version__, counts()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    versions = {name: version(name) for name in ("numpy", "scikit-learn", "scipy")}
    (folder / "versions.json").write_text(json.dumps(versions, indent=1) + "\n")
    table.to_csv(folder / "counts.csv")
    np.savetxt(folder / "start.txt", np.random.default_rng(6).standard_normal((table.shape[1], 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of three iterations
        model = AMPEmbedding(**PARAMETERS).fit(table)
        write_checkpoints(write_shards(table, folder / "shards", rows=35), folder / "checkpoints")
    (folder / "model.pickle").write_bytes(pickle.dumps(model))
    model.to_word2vec(folder / "model.vec")
    np.savetxt(folder / "transformed.txt", model.transform(table))
    columns, rows = (np.array(each, dtype=str) for each in (table.columns, table.index))
    corpus = Corpus(model._check_counts(table, reset=False), columns, None, rows, 0, 0)
    save(folder / "corpus.counts", _to_arrays(corpus))
    shutil.copy(RESULTS / "singular.json", folder)
    (folder / "grading.yml").write_text(yaml.safe_dump({"seed": 54, "limits": {"seconds": 300, "megabytes": 2048}}))
    write_gradebook(folder)
    print(f"{folder}: {sum(path.stat().st_size for path in folder.rglob('*') if path.is_file()) / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
