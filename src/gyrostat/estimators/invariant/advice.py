"""Sentences about the data as a whole: what an analyst should know before believing a table."""

from __future__ import annotations

import xarray as xr

from gyrostat.estimators.invariant.verdicts import KEPT, REMOVED


def advice(features: xr.Dataset, directions: xr.Dataset, level: float) -> tuple[str, ...]:
    """What is kept and removed, whether covariates shift, and whether a feature looks like a consequence of the response."""
    said = [_counts(features), _combinations(features, directions), _shift(features, level), _consequences(features)]
    return tuple(sentence for sentence in said if sentence)


def _named(features: xr.Dataset, chosen: xr.DataArray) -> str:
    names = features.feature.values[chosen.values].tolist()
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _counts(features: xr.Dataset) -> str:
    kept, removed = features.verdict == KEPT, features.verdict == REMOVED
    places = features.sizes["environment"]
    if places == 1:
        return "There is one environment, so nothing can be found spurious: give a label that varies."
    parts = [
        f"kept: {_named(features, kept)}" if kept.any() else "nothing is sure to be invariant",
        f"removed: {_named(features, removed)}" if removed.any() else "nothing varies by more than the tolerance",
    ]
    unclear = ~(kept | removed)
    if unclear.any():
        parts.append(f"cannot be told: {_named(features, unclear)} (a linear model keeps them)")
    return f"Of {features.sizes['feature']} features in {places} environments: " + "; ".join(parts) + "."


def _combinations(features: xr.Dataset, directions: xr.Dataset) -> str:
    if (features.verdict == REMOVED).any() or not (directions.verdict == REMOVED).any():
        return ""
    return (
        "No single feature is removed, but a combination of features varies by more than the tolerance (see the principal "
        "directions): with directions='principal' the model leaves such combinations out."
    )


def _shift(features: xr.Dataset, level: float) -> str:
    share = level / max(features.sizes["feature"], 1)
    shifted = (features.shift_variance_p < share) | (features.shift_mean_p < share)
    if not shifted.any():
        return ""
    sentence = f"Covariates shift (their means or variances differ between environments): {_named(features, shifted)}."
    if not (features.differ_p < level).any():
        return sentence + " No effect is seen to differ, so this by itself is no reason to leave anything out."
    return sentence


def _consequences(features: xr.Dataset) -> str:
    looks = features.consequence
    if not looks.any():
        return ""
    return (
        f"{_named(features, looks)}: the effect differs, but the regression of the feature on the response is the same "
        "everywhere, as for a consequence of the response (IRM's X2 = Y + noise). This method does not solve that case: the "
        "effects of all other features beside it vary too, and may be removed for no fault of theirs. Leave it out and look "
        "again."
    )
