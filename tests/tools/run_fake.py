"""The command line with the fake paper; worker processes import this file too, and so know the paper."""

import signal
import sys
from pathlib import Path

if __name__ in ("__main__", "__mp_main__"):
    sys.path.insert(0, str(Path(__file__).parent))
    from gyrostat.experiments import registry

    registry.PAPERS["fake2024"] = "fake2024:PAPER"

if __name__ == "__main__":
    from gyrostat.cli import main

    # Tests that run in the background (nohup, &) ignore Ctrl-C, and their children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()
