"""Measure what the kit of checks notices: wrong denoisers by the hundred, and right ones on a thousand seeds.

    python -m studies.kit_study                                # every assignment: days on one process
    python -m studies.kit_study --mutants 40 --seeds 3 --right-seeds 60 --assignment 1 4
    python -m studies.kit_study --summary                      # run nothing, and store the sums of what has been run

Right denoisers are all files of course/solutions/NN_name, which must pass every check. A wrong denoiser is one of them
where one operator, constant or function has been exchanged, as studies/mutate.py does it, or a mistake of
course/solutions/NN_name/wrong.yml. On each seed of hidden settings it is asked until a check fails: that one has then
killed it.
What no seed changes, such as the prediction, is asked once, of a denoiser that passes all else. One that does not end
is asked on no other seed.
A mutant that no check kills and that answers as its own original does, to nine digits, on all problems of some seeds,
computes the same and does not count; nor does one of course/solutions/equivalent.yml, which says why.

Stop it whenever you like: the same command goes on. What has been run is kept in .kit_study, by a hash of the package
and of the denoiser, and the sums in course/solutions/study.json and, as a table, in book/kit_study.txt.
"""

import argparse
import ast
import hashlib
import json
import multiprocessing
import random
import resource
import sys
import tempfile
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import numpy as np
import yaml
from imports import modules_of
from tqdm import tqdm

from amptutorial.checks import describe_error
from amptutorial.checks.problems import LONG, draw
from amptutorial_course.assignments import ASSIGNMENTS, load_submission, maker

from . import mutate

ROOT = Path(__file__).parents[1]
SOLUTIONS = ROOT / "course/solutions"
KEPT = ROOT / ".kit_study"
STORED = SOLUTIONS / "study.json"
TABLE = ROOT / "book/kit_study.txt"
CPU_SECONDS = 120  # for one denoiser on one seed; right ones take up to forty
FIRST_SEED = 5000  # none that a test uses
SAME = 1e-9
SAME_ANSWERS = ["same", ""]  # the verdict on a mutant that is none
STARTING = threading.Lock()
UNASKED = ["unasked", ""]  # on further seeds, what did not end on one of them


def wrong_sources(task, sample):
    """Return wrong denoisers and their originals by kind and name; of mutants, a `sample` that is always the same."""
    right = right_sources(task)
    every = [one for name, source in right.items() for one in mutate.mutants(name, source)]
    drawn = random.Random(task.number).sample(every, min(sample, len(every)))
    named = {f"{one.module}, {one.function}: {one.change}": one for one in drawn}
    found = {("mutant", name): (one.apply(right[one.module]), right[one.module]) for name, one in named.items()}
    for mistake in yaml.safe_load((SOLUTIONS / task.folder / "wrong.yml").read_text(encoding="utf-8")):
        changed = right["denoiser.py"]
        for old, new in mistake["changes"]:
            changed = changed.replace(old, new)
        found["bank", mistake["mistake"]] = changed, right["denoiser.py"]
    return found


def right_sources(task):
    """Return the sources of right denoisers by name."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted((SOLUTIONS / task.folder).glob("*.py"))}


def first_failure(task, source, seed):
    """Return the name of a check that the denoiser fails on the settings of a seed, with its message, or None."""
    module = load(source)
    trials = task.trials(maker(module), seed=seed, n_problems=LONG)
    for check in task._checks():  # in the order of a report
        for trial in trials:
            try:
                if check.applies(trial):
                    check.measure(trial)
            except Exception as error:  # noqa: BLE001  whatever a wrong denoiser raises
                return check.name, describe_error(error, trial.title)[:300]
    return None


def load(source):
    """Return the module of a source."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "denoiser.py"
        path.write_text(source, encoding="utf-8")
        return load_submission(path)


def computes_the_same(task, source, original, seeds=(1, 2)):
    """Say whether a denoiser answers as another, to round-off, on all problems of some seeds."""
    modules = [load(text) for text in (source, original)]
    if modules[0].PREDICTION != modules[1].PREDICTION:
        return False
    for seed in seeds:
        pairs = zip(*(task.trials(maker(module), seed=seed) for module in modules), strict=True)
        if not all(agree(*both) for pair in pairs for both in answers(*pair)):
            return False
    return True


def agree(a, b):
    """Say whether two outcomes are the same answer, or the same error."""
    errors = isinstance(a, type) or isinstance(b, type)
    return a is b if errors else np.allclose(a, b, SAME, 1e-300, equal_nan=True)


def outcome(question, *arguments):
    """Return an answer, or the kind of the error in its place."""
    try:
        return question(*arguments)
    except Exception as error:  # noqa: BLE001  whatever a wrong denoiser raises
        return type(error)


def answers(one, other):
    """Yield what comes of two trials of the same setting, in pairs."""
    problem, belief = one.problem, one.belief
    c = getattr(belief, "convexity", None) or 0.0
    rng = np.random.default_rng(0)
    drawn = [draw(rng, one, n_rows) for n_rows in (*[1] * 20, *[10] * 20, 300, 10_000)]
    for each in (problem, problem.indefinite(c / problem.r.max()), *problem.hard().values(), *drawn):
        for method in ("estimate", "mean_jacobian"):
            yield tuple(outcome(getattr(trial.denoiser, method), *each.copies()) for trial in (one, other))
        for X in (each.P, other.estimate(each)):
            yield tuple(outcome(trial.denoiser.penalty, X.copy(), each.r.copy()) for trial in (one, other))
        yield tuple(outcome(trial.denoiser.convexity, each.r.copy()) for trial in (one, other))
    for limit in one.limits:
        yield tuple(outcome(trial.make(**limit.changes).estimate, *problem.copies()) for trial in (one, other))


def judge(task, source, seed):
    """Return what came of one denoiser on the settings of one seed: a check and its message, or None for a pass."""
    try:
        return first_failure(task, source, seed)
    except Exception as error:  # noqa: BLE001  it cannot even be imported
        return ["import", describe_error(error)[:300]]


def judge_without_seed(task, kind, source, original):
    """Return what no seed changes: a mutant that computes the same, a wrong prediction, or None for a pass."""
    if kind == "mutant" and computes_the_same(task, source, original):
        return SAME_ANSWERS
    module = load(source)
    result = task.check_prediction(maker(module), getattr(module, "PREDICTION", None))
    return None if result.passed else [result.name, result.message]


def in_a_child(judge, *question):
    """Return the verdict of `judge` by a process that may take `CPU_SECONDS`."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def child():
        tqdm.set_lock(threading.RLock())  # that of the parent may have been held when the child was forked
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        with np.errstate(all="ignore"):
            sender.send(judge(*question))

    process = context.Process(target=child)
    with STARTING:  # a child that is forked while another thread imports something waits for that thread for ever
        process.start()
    sender.close()
    try:
        verdict = receiver.recv()
    except EOFError:  # it was killed
        verdict = ["time", f"no end after {CPU_SECONDS} s"]
    process.join()
    return verdict


def digest(*texts):
    """Return a short hash."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def kept_verdicts(version):
    """Return what has been run with this version of the package, by denoiser and seed."""
    path = KEPT / f"{version}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return {tuple(key): verdict for key, verdict in map(json.loads, lines)}


def run(tasks, options, version):
    """Judge every denoiser on every seed that has not been judged yet."""
    done, questions = kept_verdicts(version), []
    # what no seed changes is asked where a denoiser passes for the first time
    known = {key[:-1]: verdict for key, verdict in done.items() if not verdict or verdict[0] in ("same", "prediction")}
    endless = {key[:-1] for key, verdict in done.items() if verdict and verdict[0] == "time"}
    for task in tasks:
        right = {("right", name): (source, source) for name, source in right_sources(task).items()}
        for (kind, name), (source, original) in (wrong_sources(task, options.mutants) | right).items():
            n_seeds = options.right_seeds if kind == "right" else options.seeds
            for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
                key = (task.folder, kind, name, digest(source), seed)
                if key not in done:
                    questions.append((key, (task, kind, source, original)))
    # some seeds of all before all seeds of some, and every assignment at once
    questions.sort(key=lambda question: (question[0][-1], question[0][3]))

    def ask(key, task, kind, source, original):
        one, seed = key[:-1], key[-1]
        if one in endless:
            return UNASKED
        if known.get(one) == SAME_ANSWERS:
            return SAME_ANSWERS
        verdict = in_a_child(judge, task, source, seed)
        if verdict is None and one not in known:
            known[one] = in_a_child(judge_without_seed, task, kind, source, original)
        if verdict and verdict[0] == "time":
            endless.add(one)
        return verdict or known[one]

    KEPT.mkdir(exist_ok=True)
    pool = ThreadPoolExecutor(options.jobs)
    asked = {pool.submit(ask, key, *question): key for key, question in questions}
    try:
        with (KEPT / f"{version}.jsonl").open("a", encoding="utf-8") as file:
            for one in tqdm(as_completed(asked), total=len(asked)):
                file.write(json.dumps([asked[one], one.result()]) + "\n")
                file.flush()
    finally:
        pool.shutdown(cancel_futures=True)


def summary(tasks, version):
    """Return the sums of what has been run, by assignment."""
    verdicts, known, found = kept_verdicts(version), equivalents(), {}
    for task in tasks:
        own = {key[1:]: v for key, v in verdicts.items() if key[0] == task.folder and v != UNASKED}
        same = {key[1] for key, verdict in own.items() if verdict and verdict[0] == "same"}
        listed = {name for (kind, name, *_) in own if (task.folder, name) in known}
        asked = {key: v for key, v in own.items() if key[0] != "right" and key[1] not in same | listed}
        right = {key: v for key, v in own.items() if key[0] == "right"}
        found[task.folder] = {
            "mutants": len({key[1] for key in asked if key[0] == "mutant"}),
            "mistakes": len({key[1] for key in asked if key[0] == "bank"}),
            "seeds": len({key[3] for key in asked}),
            "asked": len(asked),
            "killed": sum(verdict is not None for verdict in asked.values()),
            "by check": dict(Counter(verdict[0] for verdict in asked.values() if verdict).most_common()),
            "same": sorted(same),
            "listed": sorted(listed),
            "survived": sorted({(key[1], key[3]) for key, verdict in asked.items() if verdict is None}),
            "right files": len({key[1] for key in right}),
            "right seeds": len({key[3] for key in right}),
            "right asked": len(right),
            "right failed": sorted((key[1], key[3], *v) for key, v in right.items() if v),
        }
    return found


def table(found):
    """Return the sums as a table and a sentence."""
    kills = Counter()
    lines = ["| | mutants | mistakes | seeds | noticed | right files | seeds | failed |", "|---|" + "---:|" * 7]
    for folder, one in found.items():
        kills.update(one["by check"])
        right = (one["right files"], one["right seeds"], f"{len(one['right failed'])} of {one['right asked']}")
        wrong = (one["mutants"], one["mistakes"], one["seeds"], f"{one['killed']} of {one['asked']}")
        lines.append(f"| {' | '.join(map(str, (int(folder[:2]), *wrong, *right)))} |")
    order = ", ".join(f"`{name}` {count}" for name, count in kills.most_common())
    return "\n".join(lines) + f"\n\nAsked in the order of a report, these noticed first: {order}.\n"


def equivalents():
    """Return the reasons of course/solutions/equivalent.yml, by folder and name."""
    entries = yaml.safe_load((SOLUTIONS / "equivalent.yml").read_text(encoding="utf-8")) or []
    return {(one["folder"], one["mutant"]): one["reason"] for one in entries}


def package_version():
    """Return a hash of what verdicts depend on: the code that the assignments import, without comments and layout."""
    paths = sorted(modules_of("import amptutorial_course.assignments, amptutorial.checks"))
    return digest(*(ast.dump(ast.parse(path.read_text(encoding="utf-8"))) for path in paths))


def main():
    """Run what is left of the study, and store its sums."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mutants", type=int, default=100, help="of the solutions of an assignment (default: 100)")
    parser.add_argument("--seeds", type=int, default=20, help="for each wrong denoiser (default: 20)")
    parser.add_argument("--right-seeds", type=int, default=1000, help="for each right one (default: 1000)")
    parser.add_argument("--assignment", type=int, nargs="+", choices=ASSIGNMENTS, default=list(ASSIGNMENTS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--summary", action="store_true", help="run nothing")
    options = parser.parse_args()
    tasks, version = [ASSIGNMENTS[number] for number in options.assignment], package_version()
    if not options.summary:
        run(tasks, options, version)
    found = summary(ASSIGNMENTS.values(), version)
    STORED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    TABLE.write_text(table(found), encoding="utf-8")
    failed = [text for one in found.values() for text in one["right failed"]]
    killed, asked = (sum(one[what] for one in found.values()) for what in ("killed", "asked"))
    print(f"killed {killed} of {asked}: {killed / max(asked, 1):.1%}; right denoisers that failed: {len(failed)}")
    sys.exit(bool(failed) or killed < 0.99 * asked)


if __name__ == "__main__":
    main()
