"""The methods of the suite ``invariance``: peers, and our estimator as it comes and with other ``directions``."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from gyrostat.estimators.comparison import peer_methods
from gyrostat.estimators.comparison.compared_methods import PEERS, REFERENCE, TOLERANCES, Method

WORST = " (worst)"
"""The suffix of methods whose hyper-parameter is chosen by the worst error in an environment left out."""
OURS = "ours"
UNTUNED = "ours, untuned"
FEATURES = "ours, by feature"
PRINCIPAL = "ours, principal"
OWN = (OURS, UNTUNED, FEATURES, PRINCIPAL)
"""Our estimator with its tolerance chosen; with defaults; deciding on features only; deciding on principal directions only."""
BY_MEAN = (
    PEERS[REFERENCE],
    Method(OURS, peer_methods.ours, TOLERANCES, 0.5),
    Method(UNTUNED, peer_methods.ours, (), 0.5),
    Method(FEATURES, partial(peer_methods.ours, directions="features"), (), 0.5),
    Method(PRINCIPAL, peer_methods.principal, (), 0.5),
    *(PEERS[name] for name in ("ridge", "fixed effects", "IRMv1", "V-REx", "GroupDRO", "ANDMask", "anchor", "ICP")),
)
"""All methods with hyper-parameters chosen by the mean; pooled least squares, the reference, comes first."""
METHODS = (*BY_MEAN, *(replace(m, name=m.name + WORST, rule="worst") for m in BY_MEAN if m.grid))
"""Methods with a hyper-parameter to choose come twice, once for each rule."""
