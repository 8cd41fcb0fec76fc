"""Do claims and tests notice bugs that nobody listed? ``make mutants`` changes the core at random places, one at a time.

A mutant changes one operator, constant, comparison, index, default or flag, or drops one term, in the rooms of the core and in
``theory/``. A seed samples the mutants. Each is tried on the experiments and on the tests that call the function it is in, the
quickest first, until a claim and a test notice it; a mutant whose experiments or tests together take longer than ``SECONDS``
is tried on the first of them. Mutants that no program can tell from the code, judged by hand, stand in ``EQUIVALENT`` with the
reason. Results are kept in ``.cache/mutation``; the command resumes. It writes ``docs/mutants.md``.
"""

from __future__ import annotations

import argparse
import ast
import json
import multiprocessing
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutation_suite import KEPT, LIBRARIES, PACKAGE, ROOT, SEEDS, SETTINGS, UNCHANGED, KeptRuns
from mutations import Mutation

ROOMS = ("algorithms", "diagnostics", "engine", "environments", "jax_tools", "measurements", "models", "theory")
PAGE, REACH = ROOT / "docs" / "mutants.md", KEPT / "reach.json"
SAMPLE, SAMPLE_SEED = 200, 2026
SECONDS = 60.0
EQUIVALENT: dict[str, str] = {}
"""Name of a mutant -> why no run differs from that of the code."""

SWAPS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclass(frozen=True)
class Mutant(Mutation):
    """A change of the characters from ``start`` to ``stop`` of ``file``, in the function that begins at line ``function``."""

    start: int = 0
    stop: int = 0
    function: int = 0

    def apply(self, source: str) -> str:
        """The source with the change."""
        if source.encode()[self.start : self.stop].decode() != self.old:
            raise ValueError(f"{self.name}: {self.file} has changed.")
        return (source.encode()[: self.start] + self.new.encode() + source.encode()[self.stop :]).decode()


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """What a node may be changed to, each with the kind of change."""
    if isinstance(node, ast.BinOp):
        if type(node.op) in SWAPS:
            yield "operator", ast.BinOp(node.left, SWAPS[type(node.op)](), node.right)
        if isinstance(node.op, ast.Add | ast.Sub):
            yield "dropped term", node.left
        if isinstance(node.op, ast.Pow):
            yield "operator", ast.BinOp(node.left, ast.Mult(), node.right)
    elif isinstance(node, ast.BoolOp):
        yield "operator", ast.BoolOp(SWAPS[type(node.op)](), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield "operator", node.operand
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in SWAPS:
        yield "comparison", ast.Compare(node.left, [SWAPS[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield "flag", ast.Constant(not node.value)
        elif isinstance(node.value, int):
            yield "constant", ast.Constant(node.value + 1)
        elif isinstance(node.value, float):
            yield "constant", ast.Constant(1.1 * node.value or 1.0)


def expressions(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one that computations use: not annotations, texts, messages of errors, or inner functions."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(
                child, ast.Raise | ast.JoinedStr | ast.FunctionDef | ast.ClassDef | ast.AnnAssign
            ):
                yield child
                yield from expressions(child)


def mutants() -> list[Mutant]:
    """All mutants of the rooms, in the order of the files."""
    all_mutants = []
    for path in sorted(path for room in ROOMS for path in (PACKAGE / room).rglob("*.py")):
        source, file = path.read_text(), str(path.relative_to(PACKAGE))
        starts = [0]
        for line in source.encode().splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        for function in ast.walk(ast.parse(source)):
            if not isinstance(function, ast.FunctionDef):
                continue
            for node in expressions(function):
                for kind, changed in changes(node):
                    start = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
                    stop = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
                    old = source.encode()[start:stop].decode()
                    name = f"{file[:-3].replace('/', '-')}-{start}-{stop}-{kind.replace(' ', '-')}"
                    first = min([function, *function.decorator_list], key=lambda x: x.lineno).lineno
                    new = f"({ast.unparse(ast.fix_missing_locations(changed))})"
                    all_mutants.append(Mutant(name, file, old, new, kind, (), "", start, stop, first))
    return all_mutants


# --- which experiments and tests call which function ------------------------------------------------------------------------


def called(operation: Any) -> list[str]:
    """``file:line`` of the functions of the rooms that an operation calls."""
    functions: set[str] = set()
    roots = tuple(f"{PACKAGE / room}{os.sep}" for room in ROOMS)

    def look(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(roots):
            functions.add(f"{code.co_filename.removeprefix(f'{PACKAGE}{os.sep}')}:{code.co_firstlineno}")

    sys.setprofile(look)
    try:
        operation()
    finally:
        sys.setprofile(None)
    return sorted(functions)


class Recorder:
    """A plugin of pytest that writes the functions that each test calls, and its seconds, to a file."""

    def __init__(self, file: str):
        self.file, self.tests, self.seconds = Path(file), {}, {}  # type: ignore[var-annotated]

    def pytest_pyfunc_call(self, pyfuncitem: Any) -> bool:
        """Call the test, and look."""
        arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
        self.tests[pyfuncitem.nodeid] = called(lambda: pyfuncitem.obj(**arguments))
        return True

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note how long the test took."""
        if report.when == "call":
            self.seconds[report.nodeid] = report.duration

    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        tests = {name: {"calls": calls, "seconds": self.seconds[name]} for name, calls in self.tests.items()}
        self.file.write_text(json.dumps(tests))


def experiment_calls(name: str) -> dict[str, Any]:
    """The functions that an experiment calls, and its CPU seconds; to be asked of a new process."""
    import warnings

    from gyrostat.reproduce.claims import judge
    from gyrostat.reproduce.tasks import ExperimentTask

    warnings.simplefilter("ignore")
    seconds = 0.0

    def run() -> None:
        nonlocal seconds
        task = ExperimentTask(name, "smoke", SEEDS[0])
        result, _ = task.compute(lambda done, total: None)
        judge(name, task.experiment, result.dataset, 0.0)
        seconds = result.cpu_seconds

    return {"calls": called(run), "seconds": seconds}


def reach() -> dict[str, dict[str, Any]]:
    """Experiments and tests -> the functions they call and their seconds; computed once for a state of the code."""
    from gyrostat.experiments.registry import PAPERS, experiments
    from gyrostat.stores.fingerprint import core_digest

    kept = json.loads(REACH.read_text()) if REACH.exists() else {}
    if kept.get("code") == core_digest():
        return kept["reach"]
    names = [f"{paper}/{name}" for paper in PAPERS for name in experiments(paper)]
    with multiprocessing.get_context("forkserver").Pool(2, maxtasksperchild=1) as pool:
        all_calls = dict(zip(names, pool.map(experiment_calls, names, chunksize=1), strict=True))
    folders = [f"tests/{room}" for room in ROOMS if (ROOT / "tests" / room).is_dir()]
    record = KEPT / "tests.json"
    code = (
        f"import pytest, sys, generated_mutants as g; pytest.main({folders!r}, plugins=[g.Recorder({str(record)!r})])"
    )
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tools")])
    subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=os.environ | {"PYTHONPATH": paths}, stdout=subprocess.DEVNULL
    )
    all_calls |= json.loads(record.read_text())
    REACH.write_text(json.dumps({"code": core_digest(), "reach": all_calls}))
    return all_calls


def within(names: Sequence[str], seconds: dict[str, float]) -> list[str]:
    """The quickest first, as many as fit into ``SECONDS``, and one at least."""
    ordered, total, chosen = sorted(names, key=lambda name: seconds[name]), 0.0, []
    for name in ordered:
        total += seconds[name]
        if chosen and total > SECONDS:
            break
        chosen.append(name)
    return chosen


# --- trials -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """What noticed a mutant (a claim and a test, empty for none), and whether a number of a claim changed."""

    mutant: Mutant
    claim: str
    test: str
    changed: bool
    tried: int


def verdict(mutant: Mutant, ask: Any, calls: dict[str, dict[str, Any]]) -> Verdict:
    """Try a mutant on the experiments and on the tests that call its function."""
    function = f"{mutant.file}:{mutant.function}"
    seconds = {name: each["seconds"] for name, each in calls.items()}
    reaching = [name for name, each in calls.items() if function in each["calls"]]
    experiments = within([name for name in reaching if "::" not in name], seconds)
    tests = within([name for name in reaching if "::" in name], seconds)
    claim, changed = "", False
    for name in experiments:
        run, usual = ask(mutant, name, SEEDS[0]), ask(UNCHANGED, name, SEEDS[0])
        changed |= bool(run["raised"]) or run["numbers"] != usual["numbers"]
        if run["raised"]:
            claim = f"`{name}` raises {run['raised']}"
        elif news := set(run["surprises"]) - set(usual["surprises"]):
            again = ask(mutant, name, SEEDS[1])
            news &= set(again["surprises"]) - set(ask(UNCHANGED, name, SEEDS[1])["surprises"])
            claim = f"`{name}/{min(news)}`" if news else ""
        if claim:
            break
    test = ask(mutant, "\n".join(tests), SEEDS[0])["surprises"] if tests else []
    return Verdict(mutant, claim, test[0] if test else "", changed, len(experiments) + len(tests))


def main() -> None:
    """Run the mutants and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--first", type=int, default=SAMPLE, metavar="N", help="the first mutants of the sample only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="mutants tried at the same time")
    options = parser.parse_args()
    os.environ |= SETTINGS
    multiprocessing.set_forkserver_preload(LIBRARIES)
    sample = random.Random(SAMPLE_SEED).sample(mutants(), SAMPLE)[: options.first]
    calls, runs = reach(), KeptRuns(KEPT)

    def one(mutant: Mutant) -> Verdict:
        try:
            outcome = verdict(mutant, runs, calls)
        finally:
            runs.end(mutant)
        print(f"{mutant.name}: {outcome.claim or '-'} | {outcome.test or '-'} | changed: {outcome.changed}", flush=True)
        return outcome

    try:
        with ThreadPoolExecutor(options.jobs) as pool:
            verdicts = list(pool.map(one, sample))
    finally:
        runs.end(UNCHANGED)
    PAGE.write_text(page(verdicts))


def page(verdicts: Sequence[Verdict]) -> str:
    """The shares and the table, as Markdown."""
    judged = [v for v in verdicts if v.mutant.name not in EQUIVALENT]
    changed = [v for v in judged if v.changed]

    def share(part: Sequence[Verdict], of: Sequence[Verdict]) -> str:
        return f"{len(part)} of {len(of)} ({len(part) / max(len(of), 1):.0%})"

    rows = [
        f"| `{v.mutant.file}` | {v.mutant.sentence} | "
        f"`{' '.join(v.mutant.old.split())}` | `{' '.join(v.mutant.new.split())}` | "
        f"{v.claim or ('-' if v.changed else 'no number changes')} | {f'`{v.test}`' if v.test else '-'} |"
        for v in verdicts
    ]
    return "\n".join(
        [
            "# Mutants",
            "",
            f"- by a claim or a test: {share([v for v in judged if v.claim or v.test], judged)}",
            f"- by a claim, of those that change a number of a claim: {share([v for v in changed if v.claim], changed)}",
            f"- by a test: {share([v for v in judged if v.test], judged)}",
            f"- equivalent: {len(verdicts) - len(judged)}",
            "",
            "| file | kind | code | mutant | claim | test |",
            "|---|---|---|---|---|---|",
            *rows,
        ]
    )


if __name__ == "__main__":
    main()
