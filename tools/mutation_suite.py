"""Do the claims notice bugs? ``make mutation`` seeds each bug of ``mutations.py`` in a copy of the package and judges claims.

A bug is killed when some claim has an unexpected verdict at both seeds (and has not without the bug), or when an experiment
raises an error. Experiments run at smoke size, those that a bug names first; the first kill ends its trial. A bug that no claim
notices is also killed when the test that it names fails (and does not without the bug). Results are kept in
``.cache/mutation``, by the code of the experiment and the bug, so that the command resumes and a later call computes only what
has changed. Compiled programs are kept there as well: JAX finds them by the program itself, which a bug changes or not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutations import MUTATIONS, Mutation

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "gyrostat"
KEPT = ROOT / ".cache" / "mutation"
PAGE, SUMMARY = ROOT / "docs" / "mutations.md", ROOT / "docs" / "claims.md"
MARKS = "<!-- seeded bugs: written by make mutation -->", "<!-- end of seeded bugs -->"
SEEDS = (31, 32)
SETTINGS = {
    "GYROSTAT_COMPILE_CACHE": str(KEPT / "compiled"),
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""Environment variables of all processes, which JAX and NumPy read when they are imported."""
UNCHANGED = Mutation("unchanged", "errors.py", "", "", "No bug.", ())

ENDLESS = 600.0
"""After so many seconds a bug is said to have made an endless loop."""

Ask = Callable[[Mutation, str, int], dict[str, Any]]
"""Runs an experiment on a mutated package with a seed: gives its ``surprises`` (slugs) and what it ``raised``, if anything.

A test (``tests/...``) has the surprise ``fails`` if it fails; its seed means nothing.
"""


@dataclass(frozen=True)
class Trial:
    """The outcome of a bug: what killed it (a claim, a test or an error, empty for a survivor), and what was tried.

    A bug that has not been run has none of both.
    """

    mutation: Mutation
    killer: str = ""
    tried: tuple[str, ...] = ()


def trial(mutation: Mutation, ask: Ask, *, more: Sequence[str] = ()) -> Trial:
    """Try the experiments of a bug, and ``more``, until a claim notices it, and then its test."""
    tried = []
    for name in dict.fromkeys((*mutation.tries, *more)):
        tried.append(name)
        noticed: set[str] | None = None
        for seed in SEEDS:
            found = ask(mutation, name, seed)
            if found["raised"]:
                return Trial(mutation, f"`{name}` raises {found['raised']}", tuple(tried))
            new = set(found["surprises"])
            if new:
                new -= set(ask(UNCHANGED, name, seed)["surprises"])
            noticed = new if noticed is None else noticed & new
            if not noticed:
                break
        if noticed:
            return Trial(mutation, f"`{name}/{min(noticed)}`", tuple(tried))
    if not mutation.test:
        return Trial(mutation, "", tuple(tried))
    fails, fails_anyway = (ask(each, mutation.test, SEEDS[0])["surprises"] for each in (mutation, UNCHANGED))
    return Trial(mutation, f"`{mutation.test}`" if fails and not fails_anyway else "", (*tried, mutation.test))


class KeptRuns:
    """Runs of experiments on mutated packages, kept in a file and made when they are asked for."""

    def __init__(self, folder: Path):
        self.folder, self.file, self.lock = folder, folder / "runs.jsonl", threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.known = {run["key"]: run for run in map(json.loads, lines)}
        self.processes: dict[str, MutatedProcess] = {}
        self.busy: dict[str, threading.Lock] = {}

    def __call__(self, mutation: Mutation, name: str, seed: int) -> dict[str, Any]:
        with self.lock:
            key = run_key(
                mutation, name, seed
            )  # it parses source, which two threads of Python 3.11 must not do at once
            one_at_a_time = self.busy.setdefault(mutation.name, threading.Lock())
        with one_at_a_time:
            if key not in self.known:
                if mutation.name not in self.processes:
                    self.processes[mutation.name] = MutatedProcess(mutation, self.folder)
                run = {"key": key, **self.processes[mutation.name].run(name, seed)}
                with self.lock, self.file.open("a") as file:
                    file.write(json.dumps(run) + "\n")
                    self.known[key] = run
            return self.known[key]

    def end(self, mutation: Mutation) -> None:
        """End the process of a mutation, if there is one."""
        process = self.processes.pop(mutation.name, None)
        if process is not None:
            process.end()


def run_key(mutation: Mutation, name: str, seed: int) -> str:
    """A digest of what a run depends on: the code of the experiment or of the test, the bug and the seed."""
    from gyrostat.reproduce.tasks import experiment_task
    from gyrostat.stores.fingerprint import core_digest

    if "::" in name:
        files = sorted({test.partition("::")[0] for test in name.splitlines()})
        code = core_digest() + "".join((ROOT / file).read_text() for file in files)
    else:
        code = experiment_task(name, "smoke", seed).code
    parts = (code, mutation.file, mutation.old, mutation.new, name, str(seed))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


class MutatedProcess:
    """A process that imports a copy of the package with a bug, and runs experiments on request."""

    def __init__(self, mutation: Mutation, folder: Path):
        self.tree = Path(tempfile.mkdtemp(prefix=f"{mutation.name}-", dir=folder))
        # With the byte code, which is found again because copies keep their times.
        shutil.copytree(PACKAGE, self.tree / "gyrostat")
        if mutation is not UNCHANGED:
            path = self.tree / "gyrostat" / mutation.file
            path.write_text(mutation.apply(path.read_text()))
        # A server that has imported the libraries, but not the package, forks itself for every bug.
        context = multiprocessing.get_context("forkserver")
        self.link, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(self.tree, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def run(self, name: str, seed: int) -> dict[str, Any]:
        """The surprises of an experiment, or the error that it raises; a process that dies counts as an error."""
        if "::" in name:
            return {"name": name, "seed": seed, "surprises": self.failing(name.splitlines()), "raised": ""}
        try:
            self.link.send((name, seed))
            if not self.link.poll(ENDLESS):
                self.process.kill()
            found = self.link.recv()
        except (EOFError, OSError):
            self.process.join()
            found = {"surprises": [], "raised": f"an error that ends the process ({self.process.exitcode})"}
            found["numbers"] = ""
        return {"name": name, "seed": seed, **found}

    def failing(self, tests: Sequence[str]) -> list[str]:
        """The first of some tests that fails on the copy, if one does; all of them where the package cannot be imported."""
        command = [sys.executable, "-m", "pytest", "-x", "-p", "no:xdist", "-p", "no:cacheprovider", *tests]
        environment = os.environ | {"PYTHONPATH": str(self.tree)}
        try:
            run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=ENDLESS)
        except subprocess.TimeoutExpired:
            return ["a test does not end"]
        if run.returncode == 0:
            return []
        return re.findall(r"^FAILED (\S+)", run.stdout, re.MULTILINE)[:1] or [f"pytest ends with {run.returncode}"]

    def end(self) -> None:
        """End the process and delete its copy of the package."""
        self.link.close()
        self.process.join()
        shutil.rmtree(self.tree)


LIBRARIES = ["jax", "equinox", "jaxtyping", "optax", "xarray", "scipy.stats", "scipy.optimize", "rich.console"]
"""What the package imports, and what takes most of the time of its import."""


def work(tree: Path, link: Any) -> None:
    """The process of :class:`MutatedProcess`: receives names and seeds, sends what it found for each."""
    sys.path.insert(0, str(tree))
    from gyrostat.parallel.threads import confine_this_process, one_thread

    with one_thread(quick=True):
        confine_this_process()
        import gyrostat
        from gyrostat.reproduce.tasks import ExperimentTask

        if tree not in Path(gyrostat.__file__).parents:
            raise SystemExit(f"{gyrostat.__file__} was imported instead of the copy in {tree}.")
        while True:
            try:
                name, seed = link.recv()
            except EOFError:
                return
            link.send(_surprises(ExperimentTask(name, "smoke", seed)))


def _surprises(task: Any) -> dict[str, Any]:
    from gyrostat.reproduce.claims import is_surprise, judge

    try:
        result, seconds = task.compute(lambda done, total: None)
        records = judge(task.name, task.experiment, result.dataset, seconds)
    except Exception as error:  # a bug may raise anything, and is noticed then
        text = f"{type(error).__name__}: {' '.join(str(error).split())[:100]}"
        return {"surprises": [], "raised": text, "numbers": ""}
    surprises = [r["id"].rsplit("/", 1)[1] for r in records if is_surprise(r)]
    numbers = hashlib.sha256(json.dumps([r["measured"] for r in records]).encode()).hexdigest()[:12]
    return {"surprises": surprises, "raised": "", "numbers": numbers, "cpu_seconds": round(result.cpu_seconds, 2)}


def run_all(mutations: Sequence[Mutation], *, jobs: int, more: Callable[[Mutation], Sequence[str]]) -> list[Trial]:
    """The trials of all bugs, in order; ``more`` lists experiments to try on a bug that survives its own."""
    runs = KeptRuns(KEPT)

    def one(mutation: Mutation) -> Trial:
        try:
            found = trial(mutation, runs, more=more(mutation))
        finally:
            runs.end(mutation)
        outcome = f"killed by {found.killer}" if found.killer else f"SURVIVES {', '.join(found.tried)}"
        print(f"{mutation.name}: {outcome}", flush=True)
        return found

    try:
        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(one, mutations))
    finally:
        runs.end(UNCHANGED)


def kept_trials(folder: Path) -> list[Trial]:
    """The trials of all bugs as far as their runs are kept, without computing; a bug that lacks a run has not been run."""
    runs = KeptRuns(folder)

    def kept(mutation: Mutation, name: str, seed: int) -> dict[str, Any]:
        return runs.known[run_key(mutation, name, seed)]

    def one(mutation: Mutation) -> Trial:
        try:
            return trial(mutation, kept)
        except KeyError:
            return Trial(mutation)

    return [one(mutation) for mutation in MUTATIONS]


def summary(trials: Sequence[Trial]) -> str:
    """The kill rate and the survivors, as Markdown."""
    run = [t for t in trials if t.tried]
    survivors = [t for t in run if not t.killer]
    killed, by_tests = len(run) - len(survivors), sum("::" in t.killer for t in run)
    share = f" ({killed / len(run):.0%})" if run else ""
    by_whom = f"{killed - by_tests} by a claim at smoke size, {by_tests} by a test"
    lines = [f"{killed} of {len(run)} seeded bugs{share} are noticed: {by_whom}."]
    if len(run) < len(trials):
        lines.append(f"{len(trials) - len(run)} more have not been run.")
    if survivors:
        lines += ["Survivors:", ""]
        lines += [f"- `{t.mutation.name}`: {t.mutation.sentence}" for t in survivors]
    return "\n".join(lines)


def page(trials: Sequence[Trial]) -> str:
    """The page of all bugs, as Markdown."""
    rows = [
        f"| `{t.mutation.name}` | `{t.mutation.file}` | {t.mutation.sentence} "
        f"| {t.killer or ('**survives**' if t.tried else 'not run')} |"
        for t in trials
    ]
    lines = [
        "# Do the claims notice bugs?",
        "",
        summary(trials),
        "",
        "`make mutation` plants bugs in copies of the package, one at a time, and runs experiments at smoke size on each until",
        "a [claim](claims.md) has an unexpected verdict. A bug is killed when the same claim surprises at two seeds "
        f"({' and '.join(map(str, SEEDS))})",
        "but not without the bug, or when an experiment raises an error. A bug that no claim notices is killed when the test",
        "in the table fails. A result is kept until the core, the code of its experiment or test, or the bug changes.",
        "",
        "| bug | file | what is wrong | killed by |",
        "|---|---|---|---|",
        *rows,
    ]
    return "\n".join(lines) + "\n"


def with_summary(text: str, trials: Sequence[Trial]) -> str:
    """The page on claims with the summary between its marks."""
    begin, end = MARKS
    between = f"{begin}\n{summary(trials)}\n{end}"
    return re.sub(f"{re.escape(begin)}.*{re.escape(end)}", lambda _: between, text, count=1, flags=re.DOTALL)


def rest_of_papers(mutation: Mutation) -> list[str]:
    """All experiments of the papers that a bug names, the cheapest first."""
    from gyrostat.experiments.registry import experiments

    papers = dict.fromkeys(name.split("/")[0] for name in mutation.tries)
    weights = {f"{paper}/{name}": e.weight for paper in papers for name, e in experiments(paper).items()}
    return sorted(weights, key=lambda name: weights[name])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", choices=[m.name for m in MUTATIONS], help="these bugs only"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="bugs tried at the same time")
    parser.add_argument("--kept", action="store_true", help="write the page from what is kept, without computing")
    parser.add_argument("--all", action="store_true", help="try all experiments of the paper on survivors")
    given = parser.parse_args()
    known = {m.name: m for m in MUTATIONS}
    chosen = [known[name] for name in given.only or known]
    if given.kept:
        trials = kept_trials(KEPT)
    else:
        os.environ |= SETTINGS
        multiprocessing.set_forkserver_preload(LIBRARIES)
        trials = run_all(chosen, jobs=given.jobs, more=rest_of_papers if given.all else lambda mutation: [])
    print(summary(trials))
    if given.only is None:
        PAGE.write_text(page(trials))
        SUMMARY.write_text(with_summary(SUMMARY.read_text(), trials))


if __name__ == "__main__":
    main()
