"""The command line, as ``gyrostat`` and as ``python -m gyrostat``."""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command line. Ctrl-C ends it at once and quietly, unless a command has something to put in order first."""
    is_heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else whoever started it ignores Ctrl-C
    if is_heard:
        from gyrostat.parallel.interrupts import end_at_once

        signal.signal(signal.SIGINT, end_at_once)
    from gyrostat.cli import main as run

    try:
        run()
    finally:
        if is_heard:  # the command is done, and its exit status stands while Python puts itself in order
            signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    main()
