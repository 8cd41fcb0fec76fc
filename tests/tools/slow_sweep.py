"""An experiment for tests that kill processes: cheap, and slow only where cells are computed."""

from __future__ import annotations

import multiprocessing as mp
import os
import threading
import time

import gyrostat as gs


def build(spread: float, order: str = "iid"):
    """A small HeteroSGD; in a worker it writes its process down, and waits as long as SWEEP_SLEEP says."""
    working = mp.parent_process() is not None or threading.current_thread() is not threading.main_thread()
    if working and "SWEEP_LOG" in os.environ:
        with open(os.environ["SWEEP_LOG"], "a") as log:
            log.write(f"{os.getpid()} {spread}\n")
        time.sleep(float(os.environ.get("SWEEP_SLEEP", "0")))
    environments = gs.RandomEnvironments(3, law=gs.TwoPoint(spread=spread))
    return gs.HeteroSGD(0.05, order=order), gs.Problem(environments, gs.Identity())
