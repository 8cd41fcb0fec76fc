"""Attacks that once succeeded, tried again as a user would try them; prints the table of ``docs/robustness.md``.

``python tools/attacks.py`` takes about two minutes. Commands run in this process, the laboratory in one of its own. The
column "now" is what happened in this run; the column "before" is what happened before the checks were built.
"""

from __future__ import annotations

import contextlib
import csv
import http.client
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

SPEC = """
num_steps = 20
seeds = 2
algorithm = {kind = "HeteroSGD", step_size = 0.05}
environments = {kind = "RandomEnvironments", dimension = 3, law = {kind = "TwoPoint"}}
measurements = {kind = "Identity"}
axes.spread = [2.0, 8.0]
axes.order = ["iid", "cyclic"]
record.final = ["signal"]
success.spurious = {below = 0.1}
"""


class Attack(NamedTuple):
    """One attack: its point of the table, what is tried, what happened before, how to try it, and the test that holds it."""

    point: str
    tried: str
    before: str
    attempt: Callable[[], str]
    held_by: str


def command(*arguments: str) -> str:
    """What a command ends with: its exit status, and its last line if it is a sentence for the user."""
    from gyrostat import cli

    out, error = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["gyrostat", *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            cli.main()
    except SystemExit as left:
        status = left.code or 0
    finally:
        sys.argv = before
    said = [
        line for line in error.getvalue().splitlines() if "Try 'gyrostat" not in line and not line.startswith("Usage")
    ]
    return f"exit {status}" + (f": {' '.join(said)}" if status and said else "")


def refused(call: Callable[[], object]) -> str:
    """The sentence with which Python code is refused; ``taken`` if it is not."""
    from gyrostat.errors import GyrostatError

    try:
        found = call()
    except GyrostatError as error:
        return f"refused: {error}"
    return f"taken: {found!r}"[:100]


# --- data -----------------------------------------------------------------------------------------------------------------


def made_sweep(name: str = "out") -> Path:
    """A finished sweep."""
    Path("spec.toml").write_text(SPEC)
    if not Path("made").exists():
        command("sweep", "spec.toml", "--out", "made", "--jobs", "0")
    shutil.rmtree(name, ignore_errors=True)
    return Path(shutil.copytree("made", name))


def deleted(what: str, then: str) -> str:
    """Delete a part of a finished sweep, then draw it, or run it again and compare it with what it was."""
    from gyrostat.sweeps.store import load_sweep

    folder = made_sweep()
    path = folder / "store.zarr" / what
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    if then == "plot":
        return command("plot", "out")
    ended = command("sweep", "spec.toml", "--out", "out", "--jobs", "0")
    same = load_sweep(folder).identical(load_sweep(Path("made")))
    return f"{ended}, {'the same numbers as before' if same else 'OTHER NUMBERS'}"


def spoilt_file(name: str, content: bytes) -> str:
    folder = made_sweep()
    (folder / name).write_bytes(content)
    return command("plot", "out")


def lost_description() -> str:
    """A store without its sweep.json, and the sweep of another spec into its folder."""
    folder = made_sweep()
    (folder / "sweep.json").unlink()
    Path("other.toml").write_text(SPEC.replace("num_steps = 20", "num_steps = 30"))
    return command("sweep", "other.toml", "--out", "out", "--jobs", "0")


def run_with(**seeds: object) -> str:
    import gyrostat as gs

    problem = gs.Problem(gs.Environments.diagonal(3), gs.Identity())
    return refused(lambda: gs.run(gs.GradientDescent(0.1), problem, num_steps=2, **seeds).sizes)


def distinct_seeds() -> str:
    """Whether seed 0 and seed 2**32 are different runs."""
    import gyrostat as gs

    problem = gs.Problem(gs.RandomEnvironments(3, law=gs.TwoPoint()), gs.Identity())
    ends = [gs.run(gs.HeteroSGD(0.1), problem, num_steps=5, seed=s).spurious.values[..., -1] for s in (0, 2**32)]
    return "the same run" if (ends[0] == ends[1]).all() else "two different runs"


def model_with(**changes: object) -> str:
    """A prediction by a saved model of which some fields are changed."""
    if not Path("fit/model.json").exists():
        command("fit", "example:sites", "--target", "outcome", "--environment", "site", "--out", "fit")
    model = json.loads(Path("fit/model.json").read_text())
    Path("model.json").write_text(json.dumps({**model, **changes}))
    return command("predict", "model.json", "example:sites", "--out", "p.csv")


def nested_model() -> str:
    Path("deep.json").write_text('{"a":' * 10_000 + "1" + "}" * 10_000)
    return command("predict", "deep.json", "example:sites", "--out", "p.csv")


def table(header: list[str], scale: float = 1.0, sites: tuple[str, ...] = ("u", "v", "w")) -> None:
    """Write a table of random numbers with a column ``site``."""
    import numpy as np

    rng = np.random.default_rng(0)
    with open("t.csv", "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow([*header, "site"])
        for i in range(90):
            numbers = rng.normal(size=len(header))
            out.writerow([*(scale * numbers), sites[i % len(sites)]])


def fit(header: list[str], *options: str, out: str = "f", scale: float = 1.0, site: str = "u") -> str:
    """A fit of a table with these columns, numbers of this size, and one site of this name."""
    table(header, scale, (site, "v", "w"))
    return command("fit", "t.csv", "--target", "y", "--environment", "site", "--out", out, *options)


# --- control --------------------------------------------------------------------------------------------------------------


def sweep_of(change: tuple[str, str], *options: str) -> str:
    """A sweep of the good spec with a part of its text replaced."""
    Path("bad.toml").write_text(SPEC.replace(*change))
    began = time.monotonic()
    ended = command("sweep", "bad.toml", "--out", "bad", "--jobs", "0", *options)
    return ended if time.monotonic() - began < 5 else f"{ended} (after {time.monotonic() - began:.0f} s)"


def latin_spec() -> str:
    Path("latin.toml").write_bytes(b'title = "caf\xe9"')
    return command("sweep", "latin.toml", "--out", "o")


def help_says() -> str:
    from typer.testing import CliRunner

    from gyrostat import cli

    said = " ".join(CliRunner().invoke(cli.app, ["sweep", "--help"]).output.split())
    return "--help says: " + re.search(r"A spec is code[^.]*\.", said)[0] if "A spec is code" in said else "no word"


def flags() -> str:
    import numpy as np

    from gyrostat.estimators import InvariantLinearRegressor

    X = np.random.default_rng(0).normal(size=(90, 2))
    model = InvariantLinearRegressor(fit_intercept="no")
    return refused(lambda: model.fit(X, X[:, 0], environments=np.repeat([0, 1, 2], 30)))


def pooled() -> str:
    import gyrostat as gs

    return refused(lambda: gs.QuadraticNetworkSGD(0.1, pooled="no"))


def region() -> str:
    from gyrostat.theory.wang2023 import Region

    return refused(lambda: Region(rank=-1, balance=0.1, excess=0.1, bound=1.0, alpha=0.1))


def width() -> str:
    import gyrostat as gs

    return refused(lambda: gs.Symmetric(width=1e300))


# --- the laboratory's server ----------------------------------------------------------------------------------------------


class Laboratory:
    """A laboratory in a process of its own, and requests to it."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gyrostat", "lab", "--no-browser"], stdout=subprocess.PIPE, text=True
        )
        found = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", self.process.stdout.readline())
        self.port, self.token = int(found[1]), found[2]

    def ask(
        self, method: str, path: str, body: bytes | None = None, *, known: bool = True, **headers: str
    ) -> tuple[int, http.client.HTTPResponse, bytes]:
        """Status, answer and content of a request; who is ``known`` sends the token."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {"Authorization": f"token {self.token}"} if known else {}
        sent |= {"Content-Type": "application/json"} if body is not None else {}
        link.request(method, path, body, {**sent, **{k.replace("_", "-"): v for k, v in headers.items()}})
        answer = link.getresponse()
        content = answer.read()
        link.close()
        return answer.status, answer, content

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def hosts() -> str:
    found = [command("lab", "--no-browser", "--host", host) for host in ("", "0", "0.0", "::ffff:0.0.0.0")]
    return f"{sum(text.startswith('exit 2') for text in found)} of {len(found)} refused, the last with {found[-1]}"


def strangers(lab: Laboratory) -> str:
    cases = {
        "no token": {"known": False},
        "wrong token": {"known": False, "Authorization": "token x"},
        "foreign Host": {"Host": "evil.example"},
    }
    return ", ".join(f"{name}: {lab.ask('GET', '/presets', **options)[0]}" for name, options in cases.items())


DRAW = "/draw?lab=factors&num_steps=2000&seeds=8"


def windows(lab: Laboratory, count: int = 200) -> str:
    """Many windows at once: each gets a whole answer, or a status that says no."""
    found: Counter[str] = Counter()

    def open_one(i: int) -> None:
        try:
            status, _, content = lab.ask("GET", DRAW)
            whole = status != 200 or content.strip().endswith(b'{"kind": "end"}')
            found[f"{status}{'' if whole else ' and a cut stream'}"] += 1
        except (OSError, http.client.HTTPException, ValueError) as error:
            found[type(error).__name__] += 1

    threads = [threading.Thread(target=open_one, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ", ".join(f"{n} answers {status}" for status, n in found.most_common())


def headers(lab: Laboratory) -> str:
    requests = {
        "page": ("GET", "/", None),
        "unknown address": ("GET", "/nowhere", None),
        "wrong method": ("POST", "/draw", b"["),
        "bad state": ("GET", "/curves.csv?lab=x", None),
    }
    missing = [
        name for name, r in requests.items() if "content-security-policy" not in str(lab.ask(*r)[1].headers).lower()
    ]
    return f"headers on {len(requests) - len(missing)} of {len(requests)} answers, errors included"


def attacks(lab: Laboratory) -> list[Attack]:
    """All of them, in the order of the table."""
    stores, fuzz = "tests/sweeps/test_damaged_stores.py", "tests/fuzz"
    server = "tests/lab/test_server.py"
    nan, bold = float("nan"), "[bold]x"
    return [
        Attack(
            "1 lost data",
            "delete a chunk of a finished sweep, draw it",
            "exit 0, infinity in the table",
            lambda: deleted("signal/c/0/0/0", "plot"),
            stores,
        ),
        Attack(
            "1 lost data",
            "delete a chunk, run the sweep again",
            "exit 0, 'all cells done', nothing computed",
            lambda: deleted("signal/c/0/0/0", "sweep"),
            stores,
        ),
        Attack(
            "1 lost data",
            "delete a whole array, run the sweep again",
            "exit 0, nothing computed",
            lambda: deleted("signal", "sweep"),
            stores,
        ),
        Attack(
            "1 lost data",
            "delete `sweep.json`, run another spec into the folder",
            "numbers of the first spec, under the settings of the second",
            lost_description,
            stores,
        ),
        Attack(
            "2 files",
            "`zarr.json` of the store empty",
            "traceback",
            lambda: spoilt_file("store.zarr/zarr.json", b""),
            stores,
        ),
        Attack("2 files", "`sweep.json` is `[]`", "traceback", lambda: spoilt_file("sweep.json", b"[]"), stores),
        Attack(
            "2 files",
            "a folder name of 300 characters",
            "traceback",
            lambda: command("sweep", "spec.toml", "--out", "x" * 300),
            fuzz,
        ),
        Attack("3 seeds", "`seeds=[0, 0]`", "two runs that are one", lambda: run_with(seeds=[0, 0]), "tests/engine"),
        Attack("3 seeds", "`seed=2**63`", "OverflowError", lambda: run_with(seed=2**63), "tests/engine"),
        Attack("3 seeds", "seeds 0 and 2**32", "the same run", distinct_seeds, "tests/engine"),
        Attack(
            "4 models",
            "an intercept that is NaN",
            "NaN predictions, 'rows have missing values'",
            lambda: model_with(intercept=nan),
            fuzz,
        ),
        Attack("4 models", "an intercept that is `true`", "taken as 1", lambda: model_with(intercept=True), fuzz),
        Attack("4 models", "JSON nested 10,000 deep", "no limit", nested_model, fuzz),
        Attack(
            "5 tables", "the header `y,a,y`", "a copy of the target as a feature", lambda: fit(["y", "a", "y"]), fuzz
        ),
        Attack(
            "5 tables", "numbers of the size 1e160", "NaN, NumPy's warnings", lambda: fit(["y", "a"], scale=1e160), fuzz
        ),
        Attack("7 errors", "`check --values 0`", "traceback", lambda: command("check", "--values", "0"), fuzz),
        Attack("7 errors", "`check --mean 1e30`", "traceback", lambda: command("check", "--mean", "1e30"), fuzz),
        Attack("7 errors", "`fit --seed -1`", "traceback", lambda: fit(["y", "a"], "--seed", "-1"), fuzz),
        Attack("7 errors", "`fit --features a,a`", "traceback", lambda: fit(["y", "a"], "--features", "a,a"), fuzz),
        Attack(
            "7 errors",
            "`impute --environments ''`",
            "traceback",
            lambda: command("impute", "t.csv", "--environments", "", "--out", "i.csv"),
            fuzz,
        ),
        Attack("7 errors", "a spec that is not UTF-8", "traceback", latin_spec, fuzz),
        Attack(
            "7 errors",
            "`sweep --scheduler x`",
            "traceback",
            lambda: command("sweep", "spec.toml", "--out", "o", "--scheduler", "x"),
            fuzz,
        ),
        Attack(
            "7 errors",
            "`sweep --seeds 1000000000000`",
            "MemoryError",
            lambda: command("sweep", "spec.toml", "--out", "o", "--seeds", "1000000000000"),
            fuzz,
        ),
        Attack("7 errors", '`kind = "math:pi"`', "traceback", lambda: sweep_of(('"HeteroSGD"', '"math:pi"')), fuzz),
        Attack(
            "7 errors",
            "a misspelt key (`step_sise`)",
            "57 lines of failed cells",
            lambda: sweep_of(("step_size", "step_sise")),
            fuzz,
        ),
        Attack(
            "8 names",
            "a column `[/red]`, a site `$\\frac{$`, a folder `[bold]x`",
            "a crash after all files were written",
            lambda: (
                fit(["y", "[/red]", "$x$"], out=bold, site="$\\frac{$")
                + ", all files written" * Path(bold, "summary.html").exists()
            ),
            "tests/fuzz/test_fuzz_names.py",
        ),
        Attack(
            "9 formulas",
            "`9**9**9` in a spec",
            "not refused",
            lambda: sweep_of(("step_size = 0.05", 'step_size = "= 9**9**9"')),
            fuzz,
        ),
        Attack(
            "9 formulas",
            "`spaced(1, 2, 1e8)` in a spec",
            "not refused",
            lambda: sweep_of(("step_size = 0.05", 'step_size = "= spaced(1, 2, 1e8)"')),
            fuzz,
        ),
        Attack(
            "9 formulas",
            '`kind = "os:getcwd"` with `--no-code`',
            "no such option",
            lambda: sweep_of(('"HeteroSGD"', '"os:getcwd"'), "--no-code"),
            fuzz,
        ),
        Attack("9 formulas", "what the help says of code", "nothing", help_says, "tests/cli/test_cli.py"),
        Attack("10 flags", '`fit_intercept="no"`', "an intercept was fitted", flags, fuzz),
        Attack("10 flags", '`pooled="no"`', "pooled", pooled, fuzz),
        Attack("10 flags", "`Region(rank=-1)`", "taken", region, fuzz),
        Attack("10 flags", "`width=1e300`", "OverflowError", width, fuzz),
        Attack("11 server", "`--host` `''`, `0`, `0.0`, `::ffff:0.0.0.0`", "every interface", hosts, server),
        Attack("11 server", "strangers", "no token was asked for", lambda: strangers(lab), server),
        Attack("11 server", "200 windows at once", "176 answers 200 and a cut stream", lambda: windows(lab), server),
        Attack("11 server", "security headers", "on good answers only", lambda: headers(lab), server),
    ]


def main() -> None:
    """Try everything in a folder of its own, and print the table."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        lab = Laboratory()
        try:
            print("| point | tried | before | now | held by |\n|---|---|---|---|---|")
            for attack in attacks(lab):
                now = attack.attempt().replace("|", "\\|").replace("*", "\\*").replace("x" * 300, "x...")
                print(f"| {attack.point} | {attack.tried} | {attack.before} | {now} | `{attack.held_by}` |", flush=True)
        finally:
            lab.end()
            os.chdir("/")


if __name__ == "__main__":
    main()
