"""Prints the files of the package that an operation crosses: those of which a function is called, in order of first call.

    python tools/walks.py [run|figure|fit|slider|sweep ...]

`docs/architecture.md` quotes what it prints. Code that runs at import does not count.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gyrostat as gs

HOME = Path(gs.__file__).parent
AT_IMPORT = ("<module>", "__init_subclass__")


def ours(path: str) -> bool:
    return path.startswith(str(HOME)) and path.endswith(".py")


def crossed(operation: Callable[[], Any]) -> list[str]:
    """The files of which ``operation`` calls a function, in order of the first call."""
    files: dict[str, None] = {}

    def look(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        outer = frame.f_back.f_code.co_name if frame.f_back else ""
        # A class body, or a decorator that runs while a module is imported, is not part of the operation.
        importing = code.co_name in AT_IMPORT or outer in AT_IMPORT
        if event == "call" and ours(code.co_filename) and not importing:
            files.setdefault(str(Path(code.co_filename).relative_to(HOME)))

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        operation()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return list(files)


def problem() -> gs.Problem:
    return gs.Problem(gs.RandomEnvironments(9, law=gs.TwoPoint(spread=6.0)), gs.FreshGaussian(900))


def one_run() -> None:
    gs.run(gs.HeteroSGD(0.05), problem(), num_steps=20, seeds=2)


def one_figure() -> None:
    from rich.console import Console

    from gyrostat.reproduce.runner import reproduce

    reproduce(["xu2024/fig3"], size="smoke", out=tempfile.mkdtemp(), jobs=1, console=Console(file=io.StringIO()))


def one_fit() -> None:
    from gyrostat.cli import main

    sys.argv = [
        "gyrostat",
        "fit",
        "example:sites",
        "--target",
        "outcome",
        "--environment",
        "site",
        "--out",
        tempfile.mkdtemp(),
    ]
    with contextlib.suppress(SystemExit):
        main()


def one_slider_move() -> None:
    from gyrostat.lab.runs import growing_runs

    next(growing_runs((gs.HeteroSGD(0.05), problem()), ("signal", "spurious", "error"), 50, 4))


def one_sweep() -> None:
    spec = {
        "num_steps": 50,
        "seeds": 2,
        "algorithm": {"kind": "HeteroSGD", "step_size": 0.05},
        "environments": {"kind": "RandomEnvironments", "dimension": 8, "law": {"kind": "TwoPoint"}},
        "measurements": {"kind": "FreshGaussian", "num_samples": "= 200 * dimension"},
        "axes": {"spread": [1.0, 9.0]},
        "success": {"spurious": {"below": 0.1}},
    }
    gs.sweep(spec, out=tempfile.mkdtemp(), jobs=0)


OPERATIONS = {"run": one_run, "figure": one_figure, "fit": one_fit, "slider": one_slider_move, "sweep": one_sweep}


def main(names: list[str]) -> None:
    for name in names or OPERATIONS:
        files = crossed(OPERATIONS[name])
        print(f"{name}: {len(files)} files")
        print("  " + " ".join(files))


if __name__ == "__main__":
    main(sys.argv[1:])
