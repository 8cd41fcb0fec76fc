"""A program that runs for hours and is interrupted: Ctrl-C must end the run, and the next run must not wait for it."""

from __future__ import annotations

import sys

import gyrostat as gs


def main() -> int:
    """Run until an interrupt comes, then run again."""
    problem = gs.Problem(gs.RandomEnvironments(40, law=gs.TwoPoint(spread=6.0)), gs.FreshGaussian(2000))
    try:
        print("begun", flush=True)
        gs.run(gs.HeteroSGD(0.001), problem, num_steps=100_000_000, seeds=8)
    except KeyboardInterrupt:
        print("interrupted, and runs again", flush=True)
        gs.run(gs.GradientDescent(0.1), gs.Problem(gs.Environments.diagonal(3), gs.Identity()), num_steps=3)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
