"""What went, and what to use instead: the answers to commands, options and names of earlier versions."""

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
    "wang2023/phases": "run wang2023/fold, or gs.run_grid over ridge and step size for the plane.",
    "wang2023/hetero": "use the setting of wang2023/fig1 with RectangularEnvironments and OneEnvironment batches.",
}

INSTEAD = {
    **{f"the diagnostic {name}": "put a function of the snapshot into record." for name in DIAGNOSTICS},
    **{f"the paper or figure {name}": instead for name, instead in STUDIES.items()},
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
    "gyrostat verify": "run the command that wrote the folder again, which says what is missing or damaged and computes it "
    "again; gyrostat plot DIR and gs.load_results(DIR) refuse it, and gyrostat report DIR says so on the page.",
}
"""Each command, option, public name (``gyrostat.NAME``), diagnostic and study that is gone, with what to use instead."""


def instead_of(name: str) -> str | None:
    """The sentence that answers a command, an option or a name that is gone; None for any other.

    >>> instead_of("gyrostat bench")
    'gyrostat bench is gone: run make bench in a clone of the repository.'
    """
    return f"{name} is gone: {INSTEAD[name]}" if name in INSTEAD else None
