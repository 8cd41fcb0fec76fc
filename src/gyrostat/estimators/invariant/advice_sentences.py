"""What a report says of the data as a whole, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from gyrostat.estimators.invariant.influence import KEPT, LARGE, REMOVED, UNCLEAR, LargestRow
from gyrostat.estimators.invariant.linear import InvariantLinearRegressor
from gyrostat.estimators.invariant.outcomes_and_weights import proportional_to_levels

HALF, TWO_THIRDS = 1 / 2, 2 / 3
"""An environment with more than this share of its weight decides on a coefficient: the second share if there are only two."""


def advice_sentences(
    features: xr.Dataset, directions: xr.Dataset, model: InvariantLinearRegressor, row: LargestRow
) -> tuple[str, ...]:
    """Sentences, the most important first: constant predictions, verdicts, collinear and site-level features, influence of
    single environments and rows, shifts of covariates, and features that look like consequences.
    """
    sentences = (
        _constant(model),
        _counts(features),
        _common(model),
        _combinations(features, directions),
        *(_collinear(features, group) for group in model.collinear_features_),
        _site_level(features, model),
        _one_environment(features),
        _one_weight(features, model),
        _levels(features, model),
        _one_row(features, row),
        _shift(features, model.level),
        _consequences(features),
    )
    return tuple(sentence for sentence in sentences if sentence)


def _constant(model: InvariantLinearRegressor) -> str:
    if np.any(model.coef_ != 0):
        return ""
    combine = "Decide on combinations of features (directions='principal'), allow" if len(model.coef_) > 1 else "Allow"
    return (
        f"Predictions by what holds everywhere are constant: no feature is left in the model. {combine} more variation "
        "(tolerance), or predict with purpose='same-kind'."
    )


def _common(model: InvariantLinearRegressor) -> str:
    if not model.combined_ or not np.any(model.coef_ != 0):
        return ""
    if len(model.coef_) == 1:
        return "The coefficient is not the mean effect, but what the effects of all environments have in common."
    return (
        "To remove single features is not the answer here: without the removed ones, the effects of others vary, or fewer "
        "combinations than features vary. So the model uses combinations of features whose effects hold in all environments. "
        "A removed feature then may have a coefficient that is not zero; with directions='features' it is zero."
    )


def _collinear(features: xr.Dataset, group: np.ndarray) -> str:
    names = features.feature.values[group].tolist()
    return (
        f"{listed(names)} nearly repeat each other within environments, so their separate effects cannot be told apart. The "
        "verdict is on the combination that varies most, and predictions use the combinations that hold."
    )


def _site_level(features: xr.Dataset, model: InvariantLinearRegressor) -> str:
    chosen = model.site_level_features_
    if not len(chosen):
        return ""
    names, K = listed(features.feature.values[chosen].tolist()), len(model.environments_)
    if np.isnan(model.coef_se_[chosen]).any():
        return (
            f"{names}: the same for all rows of an environment. {K} environments are too few to tell such an effect from other "
            "differences between environments, so none is given."
        )
    return (
        f"{names}: the same for all rows of an environment. The effect comes from comparing {K} environments, so other "
        "differences between them may be in it."
    )


def _one_environment(features: xr.Dataset) -> str:
    """Verdicts that rest on a single environment."""
    changed = features.verdict_without != features.verdict
    found = [
        f"without {features.environment.values[e]} the verdict on {features.feature.values[j]} would be "
        f"{features.verdict_without.values[e, j]}"
        for e, j in np.argwhere(changed.transpose("environment", "feature").values)
        if features.verdict.values[j] != UNCLEAR and features.verdict_without.values[e, j] != UNCLEAR
    ]
    more = f", and {len(found) - 3} more" if len(found) > 3 else ""
    return f"A single environment decides: {'; '.join(found[:3])}{more}." if found else ""


def _one_weight(features: xr.Dataset, model: InvariantLinearRegressor) -> str:
    """Coefficients that come mostly from the environment with most of the rows."""
    if model.combined_ or not model.adjust:
        return ""
    weights = np.nan_to_num(features.environment_weight.transpose("environment", "feature").values)
    # A feature that varies in one environment only is told of elsewhere.
    compared = np.isfinite(features.error).sum("environment").values > 1
    most = HALF if len(weights) > 2 else TWO_THIRDS
    leaning = (weights > most) & compared & ~(features.differ_p.values < model.level)
    if not leaning.any():
        return ""
    where = int(np.where(leaning, weights, 0.0).max(axis=1).argmax())
    leans = leaning[where]
    one = leans.sum() == 1
    return (
        f"{features.environment.values[where]} has {weights[where, leans].mean():.0%} of the weight in the "
        f"coefficient{'' if one else 's'} of {_named(features, leans)}. Differences between environments are then hardly "
        f"seen, so the interval{'' if one else 's'} allow{'s' if one else ''} for differences that the data cannot show."
    )


def _levels(features: xr.Dataset, model: InvariantLinearRegressor) -> str:
    """Effects that differ, but are the same share of the mean response everywhere: verdicts follow its level."""
    if model.family_ != "gaussian":
        return ""
    same = proportional_to_levels(model.effects_, model.effect_errors_, model._measured.levels, model.level)
    if not same.any():
        return ""
    return (
        f"{_named(features, same)}: effects differ, but in proportion to the mean response of the environments, as for counts, "
        "amounts and rates. Relative effects are not seen to differ: if no response is negative, use family='poisson' or its "
        "logarithm."
    )


def _one_row(features: xr.Dataset, row: LargestRow) -> str:
    if row.ratio < LARGE or not abs(row.effect - row.without) >= 0.01 * abs(row.without):
        return ""
    name, where = features.feature.values[row.feature], features.environment.values[row.environment]
    moved = f"{row.ratio:.1f}" if row.ratio < 1000 else "more than 1000"
    return (
        f"Row {row.row + 1} alone moves the effect of {name} in {where} from {row.without:.3g} to {row.effect:.3g} "
        f"({moved} standard errors): check it."
    )


def listed(names: Sequence[str]) -> str:
    """Names as text.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _named(features: xr.Dataset, chosen: xr.DataArray | np.ndarray) -> str:
    names = features.feature.values[np.asarray(chosen)].tolist()
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _counts(features: xr.Dataset) -> str:
    kept, removed = features.verdict == KEPT, features.verdict == REMOVED
    num_environments = features.sizes["environment"]
    if num_environments == 1:
        return "There is one environment, so nothing can be found spurious: give a label that varies."
    parts = [
        f"kept: {_named(features, kept)}" if kept.any() else "no effect is certain to be invariant",
        f"removed: {_named(features, removed)}" if removed.any() else "nothing varies by more than the tolerance",
    ]
    unclear = ~(kept | removed)
    if unclear.any():
        them = "it" if unclear.sum() == 1 else "them"
        parts.append(f"unclear: {_named(features, unclear)} (a linear model keeps {them})")
    count = features.sizes["feature"]
    total = f"Of {count} features" if count > 1 else "One feature"
    return f"{total} in {num_environments} environments: " + "; ".join(parts) + "."


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
        return sentence + " No effect was found to differ, so this alone is not a reason to leave anything out."
    return sentence


def _consequences(features: xr.Dataset) -> str:
    looks = features.consequence
    if not looks.any():
        return ""
    return (
        f"{_named(features, looks)}: the effect differs, but the regression of the feature on the response is the same "
        "everywhere, as for a consequence of the response (IRM's X2 = Y + noise). This method does not solve that case: with "
        "such a feature in the model the effects of all other features vary too, and they may be removed without reason. "
        "Leave it out and look again."
    )
