"""What went, and what to use instead, and what moved: the answers to commands, options and names of earlier versions."""

DIAGNOSTICS = (
    *("imbalance_values", "block_norms", "block_errors"),
    *("cofactor_values", "principal_cosines", "excess_cost"),
)
STUDIES = {
    "xu2024/diagonal": "use the setting of xu2024/fig3 with VectorEnvironments and the model Diagonal.",
    "xu2024/structural": "use InvariantLinearRegressor, whose advice names this case.",
    "xiong2024/hetero": "use the setting of xu2024/fig3 with the model Asymmetric and the event ImbalanceStep.",
    "xiong2024/noise": "use the setting of xiong2024/fig1.2 with Dense(noise=...).",
    "wang2023/completion": "use LowRankImputer for missing cells.",
    "wang2023/phases": "run studies/fold, or gs.run_grid over ridge and step size for the plane.",
    "wang2023/hetero": "use the setting of wang2023/fig1 with RectangularEnvironments and OneEnvironment batches.",
}
EXPERIMENTS = {
    **{f"xu2024/{name}": f"studies/{name}" for name in ("momentum", "amplify", "predictor")},
    "xiong2024/peers": "studies/peers",
    "wang2023/fold": "studies/fold",
    "xu2024/data": "xu2024/fig5-replacement",
    "xu2024/order": "xu2024/fig3-readings",
    "xu2024/error-law": "xu2024/thm2",
    "xu2024/kappa": "xu2024/thm8",
    "wang2023/cost": "wang2023/balance",
    "wang2023/streaks": "wang2023/balance",
    "wang2023/initialisations": "wang2023/pytorch-start",
}
"""Where the claims of experiments are that moved or were merged with another on the same item."""

INSTEAD = {
    **{f"the diagnostic {name}": "put a function of the snapshot into record." for name in DIAGNOSTICS},
    **{f"the paper or figure {name}": instead for name, instead in STUDIES.items()},
    **{f"the paper or figure {was}": f"use {now}, which has its claims." for was, now in EXPERIMENTS.items()},
    "gyrostat.theory.leading_error": "use gyrostat.theory.ours.error_law, which counts all that it left out.",
    "gyrostat.theory.Toy": "gyrostat.theory.xiong2024.toy_sequences returns a tuple of four arrays.",
    "gyrostat.theory.predictors": "put a rule of your own into gyrostat.theory.RULES.",
    "gyrostat.Geometric": "use a function of the step, such as lambda t: (0.1, 0.01 * 0.1 ** (t / 1000)), or "
    "optax.exponential_decay.",
    "gyrostat bench": "run make bench in a clone of the repository.",
    "gyrostat claims --coverage": "docs/coverage.md is the page; in a clone of the repository, make coverage writes it.",
    "gyrostat compare --paper": "leave it out, because the code of a paper is no longer needed.",
    "gyrostat export": "gs.load_results(DIR) reads results, xarray.open_zarr('DIR/store.zarr', consolidated=False) reads a "
    "sweep, to_netcdf writes either, and gyrostat plot DIR writes table.csv.",
    "gyrostat export --crate": "pack the folder, which holds data, settings, seeds, versions, figures and the report.",
    "gyrostat reproduce --seeds": "run gyrostat reproduce --seed K for each seed; in a clone of the repository, "
    "tools/surprises.py does so and counts the surprises.",
    "the tab data of the laboratory": "use gyrostat fit, which writes a page and the model.",
    "the tab steps of the laboratory": "the page step-by-step of the documentation shows a run step by step.",
    "gyrostat verify": "run the command that wrote the folder again, which says what is missing or damaged and computes it "
    "again; gyrostat plot DIR and gs.load_results(DIR) refuse it, and gyrostat report DIR says so on the page.",
}
"""Each command, option, public name (``gyrostat.NAME``), diagnostic and study that is gone, with what to use instead."""

MOVED = {
    name: f"{space}.{name}"
    for space, names in {
        "laws": "Law Sampler Absent",
        "environments": "ArrayEnvironments FeatureEnvironments RandomRectangular",
        "models": "SymmetricDifference",
        "starts": "Start Given ScaledIdentity ScaledGaussian FanInGaussian "
        "FanInUniform Orthogonal ImbalancedGaussian OrthonormalZero Spectral SymmetricGaussian",
        "schedules": "Schedule Constant WarmUp Annealing Periodic Piecewise",
        "rules": "UpdateRule GradientStep RidgeStep Preconditioned "
        "Momentum Nesterov Adam Optax amplified_heterogeneity",
        "batches": "Batches OneEnvironment Pooled Full",
        "events": "Event ImbalanceStep Shrinkage",
        "measurements": "Measurements",
        "diagnostics": "Diagnostic DIAGNOSTICS isometry_constant jumps "
        "jump_times late_speed approximate_rank representation_cost",
        "theory.wang2023": "absorbing membership Region",
        "engine": "offshoots",
        "errors": "DivergenceWarning",
        "estimators": "compare_methods",
    }.items()
    for name in names.split()
} | {"QuadraticNetwork": "QuadraticNetworkSGD"}
"""The names that were at the top of the package, and where they are now; the next version has the new ones alone."""


def instead_of(name: str) -> str | None:
    """The sentence that answers a command, an option or a name that is gone; None for any other.

    >>> instead_of("gyrostat bench")
    'gyrostat bench is gone: run make bench in a clone of the repository.'
    """
    return f"{name} is gone: {INSTEAD[name]}" if name in INSTEAD else None
