"""Run the chapters on this machine and store what they print.

    python tools/execute_book.py                      # every chapter, and the briefs of the assignments
    python tools/execute_book.py book/03_*.ipynb      # some of them

Stored notebooks are normalised: where a run gives the same results, it leaves the same file.
"""

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from normalise import normalise

ROOT = Path(__file__).parents[1]
BOOK = ROOT / "book"
# chapters and appendices
PAGES = sorted(page for pattern in ("*.ipynb", "more/*.ipynb") for page in BOOK.glob(pattern))
PROCESSES = 2
# One thread a kernel, so that sums come out in the same order; no progress bars in what is stored.
KERNEL_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "TQDM_DISABLE": "1"}


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


def execute(path):
    """Run the notebook at `path` from a fresh kernel; store it unless it fails.

    Returns
    -------
    problem : str or None
        The failing cell and its traceback.
    seconds : float
    megabytes : float
        Peak memory of the kernel.
    """
    start = time.perf_counter()
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=None,
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(path.parent)}},
    )
    try:
        client.execute()
    except (CellExecutionError, DeadKernelError) as error:
        return failure(notebook, error), time.perf_counter() - start, peak_memory()
    nbformat.write(normalise(notebook), path)
    return None, time.perf_counter() - start, peak_memory()


def peak_memory():
    """Return the megabytes that the largest of this process's children, a kernel that has ended, held at most."""
    import resource  # Windows has none

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit / 1e6


def main(paths):
    """Run `paths`, report each on a line, and return the exit status."""
    os.environ.update(KERNEL_ENVIRONMENT)
    print(f"Running {len(paths)} notebooks, {PROCESSES} at a time", flush=True)
    problems = {}
    with ProcessPoolExecutor(PROCESSES, max_tasks_per_child=1) as pool:
        runs = {pool.submit(execute, path): path for path in paths}
        for done, run in enumerate(as_completed(runs), 1):
            problem, seconds, megabytes = run.result()
            status = "FAILED" if problem else "ok"
            cost = f"{seconds:6.1f} s {megabytes:6.0f} MB"
            name = "/".join(runs[run].parts[-2:])
            print(f"[{done}/{len(paths)}] {name:<45} {status:>6} {cost}", flush=True)
            if problem:
                problems[runs[run]] = problem
    for path, problem in problems.items():
        print(f"\n{path}, {problem}", file=sys.stderr)
    return int(bool(problems))


if __name__ == "__main__":
    everything = [*PAGES, *sorted(ROOT.glob("assignments/*/brief.ipynb"))]
    sys.exit(main([Path(name).resolve() for name in sys.argv[1:]] or everything))
