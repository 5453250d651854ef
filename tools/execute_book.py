"""Run the notebooks of the book on this machine, for the site that is built from what they print.

    python tools/execute_book.py                      # all of them, into _build/run; book/ stays as it is
    python tools/execute_book.py book/03_*.ipynb      # some of them
    python tools/execute_book.py --store              # what they print is stored in book/, in one normal form

A notebook is not run again while its code, what that imports and the installed packages are the same. Whether notebooks
print what is stored is asked by nbval: `make compare`.
"""

import argparse
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from hashlib import sha256
from importlib.metadata import distributions
from multiprocessing import get_context
from pathlib import Path

import nbformat
from imports import modules_of
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from normalise import normalise

ROOT = Path(__file__).parents[1]
BOOK = ROOT / "book"
# chapters, guides and appendices
PAGES = sorted(page for pattern in ("*.ipynb", "more/*.ipynb") for page in BOOK.glob(pattern))
NOTEBOOKS = [*PAGES, *sorted(ROOT.glob("course/assignments/*/brief.ipynb"))]
RUN = ROOT / "_build/run"
SECONDS = BOOK / "seconds.json"  # of a processor, for each notebook as it was stored
# One thread a kernel, so that sums come out in the same order; no progress bars in what is stored.
KERNEL_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "TQDM_DISABLE": "1"}
PROCESSES = min(4, os.cpu_count())  # each takes up to a gigabyte


def name_of(path):
    """Return how the book calls a notebook: ``book/more/spectrum``."""
    return path.relative_to(ROOT).with_suffix("").as_posix() if path.is_relative_to(ROOT) else path.stem


def code_of(notebook):
    """Return the code cells that are run."""
    return [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]


def run_of(path, folder=RUN):
    """Return where what a notebook printed in its last run lies."""
    return folder / path.parent.name / path.name


def with_outputs(notebook, run):
    """Return `notebook` with the outputs of `run`, which has the same code."""
    for cell, ran in zip(code_of(notebook), code_of(run), strict=True):
        cell.outputs, cell.execution_count = ran.outputs, ran.execution_count
    return normalise(notebook)


@cache
def environment():
    """Return the versions of Python and of all that is installed."""
    installed = sorted({f"{found.name}=={found.version}" for found in distributions()})
    return "\n".join([sys.version, *installed])


def inputs_of(notebook):
    """Return a digest of all that decides what a notebook prints."""
    code = "\n".join(cell.source for cell in code_of(notebook))
    files = [*sorted(modules_of(code)), *sorted((ROOT / "amptutorial/paper/results").glob("*.json"))]
    return sha256("\0".join([environment(), code, *(file.read_text() for file in files)]).encode()).hexdigest()


def failure(notebook, error):
    """Return the number of the cell that failed and its traceback, as one text."""
    if isinstance(error, DeadKernelError):
        return f"the kernel died, which is most often a lack of memory: {error}"
    failed = next(
        number
        for number, cell in enumerate(notebook.cells, 1)
        if any(output.output_type == "error" for output in cell.get("outputs", []))
    )
    return f"cell {failed}\n{error}"


def changed(paths, folder=RUN):
    """Return those of `paths` that have to run, each with the digest of its inputs."""
    inputs = {path: inputs_of(nbformat.read(path, as_version=4)) for path in paths}
    runs = {path: run_of(path, folder) for path in paths}
    known = {path: nbformat.read(run, as_version=4).metadata["inputs"] for path, run in runs.items() if run.is_file()}
    return {path: digest for path, digest in inputs.items() if known.get(path) != digest}


def client_of(notebook, folder, **options):
    """Return what runs a notebook in a folder, from a fresh kernel."""
    return NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=None,
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(folder)}},
        **options,
    )


def execute(path, inputs, folder=RUN):
    """Run the notebook at `path` from a fresh kernel into `folder`, where the digest of its inputs is kept with it.

    Returns
    -------
    problem : str or None
        The failing cell and its traceback; then nothing is left in the folder.
    seconds : float
        Of the processor.
    megabytes : float
        What the kernel held at most.
    """
    notebook, target = nbformat.read(path, as_version=4), run_of(path, folder)
    target.unlink(missing_ok=True)
    problem = None
    try:
        client_of(notebook, path.parent).execute(env=os.environ | KERNEL_ENVIRONMENT)
    except (CellExecutionError, DeadKernelError) as error:
        problem = failure(notebook, error)
    import resource  # Windows has none

    kernel = resource.getrusage(resource.RUSAGE_CHILDREN)  # which has ended
    seconds = round(kernel.ru_utime + kernel.ru_stime, 1)
    if problem is None:
        notebook = normalise(notebook)
        notebook.metadata |= {"inputs": inputs, "seconds": seconds}
        target.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, target)
    return problem, seconds, kernel.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def run_all(paths, folder):
    """Run those of `paths` that have changed, the longest first.

    Returns
    -------
    problems : dict of path to str
        Why a notebook failed.
    """
    seconds, inputs = stored_seconds(), changed(paths, folder)
    order = sorted(inputs, key=lambda path: -seconds.get(name_of(path), 0))
    print(
        f"Running {len(order)} of {len(paths)} notebooks, {PROCESSES} at a time; the others have not changed",
        flush=True,
    )
    processes = get_context("forkserver")  # each kernel is the child of a process of its own, which counts its seconds
    processes.set_forkserver_preload(["nbclient"])
    problems = {}
    with ProcessPoolExecutor(PROCESSES, processes, max_tasks_per_child=1) as pool:
        runs = {pool.submit(execute, path, inputs[path], folder): path for path in order}
        for done, run in enumerate(as_completed(runs), 1):
            path, (problem, took, megabytes) = runs[run], run.result()
            if problem:
                problems[path] = problem
            status = "  FAILED" if problem else ""
            print(f"[{done:2d}/{len(order)}] {name_of(path):<41} {took:6.1f} s {megabytes:6.0f} MB{status}", flush=True)
    return problems


def stored_seconds():
    """Return the seconds of a processor that each notebook took when it was stored."""
    return json.loads(SECONDS.read_text()) if SECONDS.is_file() else {}


def store(paths, folder):
    """Write what was run into the notebooks themselves, and what it took."""
    seconds = stored_seconds()
    for path in paths:
        run = nbformat.read(run_of(path, folder), as_version=4)
        seconds[name_of(path)] = run.metadata["seconds"]
        nbformat.write(with_outputs(nbformat.read(path, as_version=4), run), path)
    known = {name_of(path) for path in NOTEBOOKS}
    kept = {name: seconds[name] for name in sorted(seconds) if name in known}
    SECONDS.write_text(json.dumps(kept, indent=1) + "\n")


def main(paths, *, folder=RUN, keep=False):
    """Run `paths`, store them if they are to be kept, and return the exit status."""
    problems = run_all(paths, folder)
    for path, problem in problems.items():
        print(f"\n{path}, {problem}", file=sys.stderr)
    ran = [path for path in paths if path not in problems]
    if keep:
        store(ran, folder)
    print(f"{len(ran)} of {len(paths)} notebooks ran to their end")
    return int(bool(problems))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="all of them, if none is named")
    parser.add_argument("--store", action="store_true", help="write what they print into the notebooks")
    options = parser.parse_args()
    sys.exit(main([path.resolve() for path in options.notebooks] or NOTEBOOKS, keep=options.store))
