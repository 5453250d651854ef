"""Leaderboard of assignment 8: how well AMPEmbedding predicts held-out counts with each `ReviewDenoiser`.

    python leaderboard.py submissions/                        # 7,000 movie reviews, chosen three times
    python leaderboard.py submissions/ --corpus docstrings    # needs no reviews

A submission is a file ``NAME.py`` or a folder ``NAME`` with a ``denoiser.py``. A fifth of the pairs of review and
word is held out, the same one for all, and `AMPEmbedding` is fitted to the others, repetitions damped. Each fit runs in
a process of its own, so that an error, a crash or an endless loop costs one line of the table. That is no sandbox: run
only what you would run by hand.
"""

import argparse
import multiprocessing
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from amptutorial_course.assignments import load_submission, maker
from amptutorial_course.assignments.reviews import embedding_gain
from amptutorial.paper.comparison import HELD_OUT
from amptutorial.corpus import load_docstrings, load_movie_reviews
from amptutorial.heldout import hold_out

GAUSSIAN = "Gaussian posterior mean"


@dataclass(frozen=True)
class Entry:
    """A line of the table: the gains in nats per count, one for each choice, and what went wrong, if anything did."""

    name: str
    gains: tuple
    error: str = ""


def read_arguments():
    """Return what was asked for on the command line."""
    parser = argparse.ArgumentParser(description="Held-out gains of the denoisers of assignment 8.")
    parser.add_argument("submissions", type=Path, help="folder with NAME.py or NAME/denoiser.py")
    parser.add_argument("--corpus", choices=["reviews", "docstrings"], default="reviews")
    parser.add_argument("--documents", type=int, default=7000, help="number of reviews")
    parser.add_argument("--rank", type=int, default=10, help="dimension of the embedding")
    parser.add_argument("--choices", type=int, default=3, help="how often reviews and held-out counts are chosen anew")
    parser.add_argument("--seconds", type=float, default=300, help="time limit of one fit")
    return parser.parse_args()


def find_submissions(folder):
    """Return the files of the submissions by name."""
    files = {path.stem: path for path in folder.glob("*.py")}
    return dict(sorted((files | {path.parent.name: path for path in folder.glob("*/denoiser.py")}).items()))


def load_tables(options, choice):
    """Return `(kept, held_out)` for one choice of the reviews and of the counts held out."""
    if options.corpus == "docstrings":
        counts = load_docstrings().counts
    else:
        counts = load_movie_reviews(n_documents=options.documents, random_state=choice).counts
    kept, held_out, _, _ = hold_out(counts, HELD_OUT, np.random.default_rng([choice, counts.shape[0]]))
    return kept, held_out


def send_gain(sender, path, options, choice):
    """Send the gain of the file at `path` (None for the Gaussian), or a text that says why there is none."""
    sys.stdout = sys.stderr = open(os.devnull, "w")
    try:
        denoiser = "posterior" if path is None else maker(load_submission(path))("ReviewDenoiser")
        gain = embedding_gain(*load_tables(options, choice), denoiser, options.rank, channel="damped")
        sender.send(gain if np.isfinite(gain) else f"the gain is {gain}")
    except BaseException as error:  # sys.exit in a submission, too
        sender.send(f"{type(error).__name__}: {error}")


def measure(path, options, choice):
    """Return the gain or the text that `send_gain` sends, from a process of its own."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=send_gain, args=(sender, path, options, choice))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(options.seconds) else f"no answer within {options.seconds:g} s"
    except EOFError:
        return "it ended Python itself"
    finally:
        process.kill()
        process.join()


def enter(name, path, options, bar):
    """Return the `Entry` of a submission; the first error ends its measurements."""
    gains = []
    for choice in range(options.choices):
        bar.set_postfix_str(name)
        answer = measure(path, options, choice)
        if isinstance(answer, str):
            bar.update(options.choices - choice)
            return Entry(name, tuple(gains), answer.splitlines()[0])
        gains.append(answer)
        bar.update()
    return Entry(name, tuple(gains))


def table(entries, baseline):
    """Return the table as text, the largest mean gain first, failed submissions last."""
    entries = sorted(entries, key=lambda entry: (bool(entry.error), -np.mean(entry.gains or 0), entry.name))
    width = max(len(entry.name) for entry in entries)
    head = f"{'':3} {'submission':{width}}  {'gain':>7}  {'lead over the Gaussian':>24}  {'ahead in':>8}"
    return "\n".join([head, *(line(k, entry, baseline, width) for k, entry in enumerate(entries, start=1))])


def line(place, entry, baseline, width):
    """Return a line of the table; leads are taken choice by choice, and come with their standard error."""
    if entry.error:
        return f"{'-':>3} {entry.name:{width}}  {entry.error}"
    lead = np.subtract(entry.gains, baseline.gains)
    error = f" +- {lead.std(ddof=1) / np.sqrt(len(lead)):.4f}" if len(lead) > 1 else ""
    compared = f"{lead.mean():+.4f}{error}" if entry is not baseline else ""
    wins = f"{(lead > 0).sum()} of {len(lead)}" if entry is not baseline else ""
    return f"{place:>3} {entry.name:{width}}  {np.mean(entry.gains):7.4f}  {compared:>24}  {wins:>8}".rstrip()


def main():
    """Measure all submissions and print the table."""
    options = read_arguments()
    files = find_submissions(options.submissions)
    if not files:
        sys.exit(f"{options.submissions} holds no NAME.py and no NAME/denoiser.py")
    load_tables(options, choice=0)  # no reviews: better said once than for every submission
    with tqdm(total=options.choices * (len(files) + 1), desc="Fitting", unit="fit") as bar:
        baseline = enter(GAUSSIAN, None, options, bar)
        if baseline.error:
            sys.exit(f"no comparison: {GAUSSIAN}: {baseline.error}")
        entries = [baseline, *(enter(name, path, options, bar) for name, path in files.items())]
    print(table(entries, baseline))


if __name__ == "__main__":
    main()
