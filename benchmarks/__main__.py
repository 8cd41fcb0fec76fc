"""``python -m benchmarks SUITE... --out DIR``: run suites, print a table and write ``DIR/bench.json``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NoReturn

from benchmarks.runner import ON_REQUEST, SUITES, run_suites
from gyrostat.cli.console import console
from gyrostat.cli.explained_errors import explained
from gyrostat.errors import GyrostatError


class OneSentence(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage above it."""

    def error(self, message: str) -> NoReturn:
        """End with status 2."""
        self.exit(2, f"benchmarks: {message}; see python -m benchmarks --help\n")


def main() -> int:
    """Compare gyrostat with other packages, both in the same run."""
    parser = OneSentence(prog="python -m benchmarks", description=main.__doc__)
    parser.add_argument(
        "suites",
        nargs="*",
        metavar="SUITE",
        help=f"{', '.join(SUITES)} (default: all of these); {', '.join(ON_REQUEST)}",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("bench-results"), metavar="DIR", help="the folder for bench.json"
    )
    chosen = parser.parse_args()
    try:
        return run_suites(chosen.suites, chosen.out, console())
    except (GyrostatError, OSError) as error:
        print(f"benchmarks: {explained(error)}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
