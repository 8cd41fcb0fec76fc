"""The process of one suite: ``python -m gyrostat.benchmarks.child SUITE FILE``, started by ``run_suites``."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from gyrostat.benchmarks import NAMED, SUITES
from gyrostat.benchmarks.groups import kept_in
from gyrostat.benchmarks.timing import pin


def main(name: str, path: str) -> None:
    """Run the suite on one core and keep its report; each line printed is a word on the progress."""
    pin()
    kept_in.set(Path(path))
    report = importlib.import_module((SUITES | NAMED)[name]).run(lambda text: print(text, flush=True))
    report.write(Path(path))


if __name__ == "__main__":
    main(*sys.argv[1:])
