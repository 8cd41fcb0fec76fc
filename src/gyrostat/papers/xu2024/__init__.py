"""Xu, Gu, Fang 2024: multi-environment matrix sensing. Figures 1-6 and one experiment for each theory item."""

from gyrostat.papers.xu2024 import lemmas, network, oscillation, pooled, recovery, regression, spectra, transition

EXPERIMENTS = (
    oscillation.FIG1,
    oscillation.FIG2,
    transition.FIG3,
    transition.FIG4,
    pooled.FIG5,
    pooled.FIG6,
    recovery.THEOREM2,
    recovery.WINDOW,
    recovery.PHASES,
    recovery.DATA,
    lemmas.LEMMA5,
    lemmas.LEMMA6,
    lemmas.LEMMA7,
    lemmas.PROPOSITION1,
    pooled.THEOREM3,
    pooled.THEOREM6,
    network.THEOREM7,
    spectra.KAPPA,
    spectra.INDEFINITE,
    spectra.CONDITION7,
    regression.DIAGONAL,
    regression.STRUCTURAL,
    transition.ORDER,
    transition.PREDICTOR,
)
