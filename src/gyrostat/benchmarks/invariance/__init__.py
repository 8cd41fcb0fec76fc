"""Evidence: how the linear estimator fares against other methods for several environments, where the answer is known and
on real data.
"""

from gyrostat.benchmarks.invariance.simulations import OURS
from gyrostat.benchmarks.invariance.structural import STRUCTURAL
from gyrostat.benchmarks.invariance.unit_tests import UNIT_TESTS

SIMULATIONS = (*OURS, *UNIT_TESTS, *STRUCTURAL)
"""Every setting with a known answer."""

__all__ = ["SIMULATIONS"]
