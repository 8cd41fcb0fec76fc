"""What the page ``docs/coloured-digits.md`` shows, made from the records of the suite: gains, tables and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.coloured.reported import FACTORS
from benchmarks.coloured.study import CANONICAL, SIGN_CHANGES, STEP_SIZES, MapSetting
from benchmarks.records import BenchmarkRecord, grid
from gyrostat.figures.declarations import Dots, Figure, Marker, Panel
from gyrostat.figures.matplotlib_renderer import render

PICTURE = "images/coloured-map"
METHODS = ("pooled", "one environment", "amplified", "V-REx", "IRMv1", "GroupDRO", "Fish", "no colour")
ON_COMPONENTS = ("linear", "diagonal", "quadratic", "rectified")
NETWORKS = (*ON_COMPONENTS, "rectified on pictures", "convolutional")

Rows = dict[str, dict[str, Any]]
"""The rows of a setting by method."""


def described(setting: MapSetting) -> dict[str, Any]:
    """A setting in a form that JSON can hold."""
    return {
        "data": setting.data,
        "network": setting.network,
        "loss": setting.loss,
        "optimiser": setting.optimiser,
        "agreements": list(setting.agreements),
        "order": setting.order,
        "wrong": setting.wrong,
    }


class MapResults:
    """The rows of every setting, and what the reports found."""

    def __init__(self, records: Sequence[BenchmarkRecord]):
        self.by_setting: dict[MapSetting, Rows] = {}
        self.reports: dict[str, list[dict[str, float]]] = {}
        self.seeds = self.steps = 0
        for record in records:
            about = record.settings
            if "reports" in about:
                self.reports[about["data"]] = about["reports"]
            if "rows" in about:
                self.seeds, self.steps = about["seeds"], about["steps"]
                keys = ("data", "network", "loss", "optimiser", "order", "wrong")
                setting = MapSetting(**{k: about[k] for k in keys}, agreements=tuple(about["agreements"]))
                self.by_setting[setting] = {row["method"]: row for row in about["rows"]}

    def rows(self, data: str, network: str, **others: Any) -> Rows:
        """The rows of one setting; none if it is not there."""
        return self.by_setting.get(MapSetting(data, network, **others), {})


def draw(found: MapResults, folder: Path) -> None:
    """Draw the picture of the page."""
    if panels := picture(found).panels:
        render(Figure(title=TITLE, panels=panels, note=NOTE.format(seeds=found.seeds), columns=2), folder / PICTURE)


QUOTED = (
    ("diagonal", "one environment"),
    ("quadratic", "one environment"),
    ("rectified", "one environment"),
    ("rectified", "amplified"),
    ("rectified on pictures", "amplified"),
    ("convolutional", "amplified"),
    ("rectified on pictures", "V-REx"),
    ("convolutional", "GroupDRO"),
)
"""The networks and methods whose gain on MNIST is in the first sentences of the page."""


def values(found: MapResults, notes: Sequence[str]) -> dict[str, Any]:
    """Everything by the names of the page's marks. What was not run is an empty table, or says so."""
    gains = {
        f"{network}-{method}".replace(" ", "-"): found.rows("mnist", network).get(method, {}).get("gain")
        for network, method in QUOTED
    }
    return {
        **{name: "not run" if each is None else each[1] for name, each in gains.items()},
        "steps": found.steps,
        "seeds": found.seeds,
        **{data: _by_network(found, data) for data in TITLES},
        "by-optimiser": _by_optimiser(found),
        "known": _known(found),
        "canonical": _canonical(found),
        "orders": _orders(found),
        "choice": _choice(found),
        "reports": _reports(found),
        "notes": list(notes),
    }


TITLES = {"mnist": "MNIST", "fashion": "Fashion-MNIST", "digits": "scikit-learn's digits"}


def number(values: Sequence[float]) -> str:
    """A mean with three decimals."""
    return f"{values[1]:.3f}"


def gain(values: Sequence[float]) -> str:
    """A gain with its interval.

    >>> gain((0.01, 0.021, 0.03))
    '+0.021 [+0.010, +0.030]'
    """
    return f"{values[1]:+.3f} [{values[0]:+.3f}, {values[2]:+.3f}]"


def _by_network(found: MapResults, data: str) -> dict[str, Any]:
    lines = []
    for network in NETWORKS:
        rows = found.rows(data, network)
        if rows:
            lines.append([network, *(_cell(rows.get(method)) for method in METHODS)])
    return grid(["network", *METHODS], lines)


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    return number(row["reversed"]) if row["method"] == "pooled" else f"{number(row['reversed'])} ({gain(row['gain'])})"


def _by_optimiser(found: MapResults) -> dict[str, Any]:
    lines = []
    for network in ON_COMPONENTS:
        for loss in ("cross-entropy", "squared"):
            for optimiser in STEP_SIZES:
                rows = found.rows("mnist", network, loss=loss, optimiser=optimiser)
                if rows:
                    gains = [gain(rows[m]["gain"]) for m in ("one environment", "amplified", "V-REx")]
                    lines.append([network, loss, optimiser, number(rows["pooled"]["reversed"]), *gains])
    return grid(["network", "loss", "optimiser", "pooled", "one environment", "amplified", "V-REx"], lines)


def _known(found: MapResults) -> dict[str, Any]:
    def at(data: str, network: str, method: str, **others: Any) -> str:
        rows = found.rows(data, network, **others)
        if method not in rows:
            return "not run"
        return (
            f"{number(rows['pooled']['reversed'])} to {number(rows[method]['reversed'])}, {gain(rows[method]['gain'])}"
        )

    points = [
        (
            "diagonal network, one environment per batch, digits",
            "0.563 to 0.809, +0.246",
            "diagonal",
            "one environment",
        ),
        ("logistic regression, one environment per batch, digits", "+0.02", "linear", "one environment"),
        ("rectified network, one environment per batch, digits", "+0.01", "rectified", "one environment"),
        ("rectified network, amplified, digits", "0.764 to 0.884, +0.120 ± 0.022", "rectified", "amplified"),
        ("the same with environments permuted", "-0.016 ± 0.029", "rectified", "placebo"),
    ]
    lines = [[what, before, at("digits", network, method)] for what, before, network, method in points]
    for network, method, optimiser, before in (
        ("diagonal", "one environment", "momentum", "half of the gain"),
        ("rectified", "amplified", "momentum", "+0.07"),
        ("rectified", "amplified", "Adam", "+0.05"),
    ):
        plain = at("mnist", network, method).partition(", ")[2]
        here = at("mnist", network, method, optimiser=optimiser)
        lines.append([f"{network} network, {method}, {optimiser}, MNIST", before, f"{here} (SGD {plain})"])
    for wrong, before in ((0.1, "+0.108"), (0.25, "+0.058")):
        what = f"rectified network, amplified, {100 * wrong:g} % of the environments wrong, MNIST"
        lines.append([what, before, at("mnist", "rectified", "amplified", wrong=wrong)])
    return grid(["point", "before", "here"], lines)


def _canonical(found: MapResults) -> dict[str, Any]:
    lines = []
    for network in NETWORKS:
        rows = found.rows("mnist", network, agreements=CANONICAL)
        if rows:
            lines.append([network, *(number(rows[m]["published"]) if m in rows else "" for m in METHODS)])
    return grid(["network", *METHODS], lines)


def _orders(found: MapResults) -> dict[str, Any]:
    lines = []
    for network in ("diagonal", "rectified"):
        for order in ("cyclic", "shuffled", "iid"):
            rows = found.rows("mnist", network, order=order)
            if rows:
                cells = [gain(rows[m]["gain"]) for m in ("one environment", "amplified")]
                lines.append([f"{network}, order {order}", *cells])
        if rows := found.rows("mnist", network):
            lines.append([f"{network}, environments permuted", "", gain(rows["placebo"]["gain"])])
    for wrong in (0.1, 0.25):
        if rows := found.rows("mnist", "rectified", wrong=wrong):
            cells = [gain(rows[m]["gain"]) for m in ("one environment", "amplified")]
            lines.append([f"rectified, {100 * wrong:g} % of the environments wrong", *cells])
    return grid(["MNIST, cross-entropy, SGD", "one environment", "amplified"], lines)


def _choice(found: MapResults) -> dict[str, Any]:
    """The accuracies when configurations are chosen by the mean over environments instead."""
    lines = []
    for network in NETWORKS:
        if rows := found.rows("mnist", network):
            cells = [
                f"{number(rows[m]['by_mean'])} ({number(rows[m]['reversed'])})" if m in rows else "" for m in METHODS
            ]
            lines.append([network, *cells])
    return grid(["network", *METHODS], lines)


def _reports(found: MapResults) -> dict[str, Any]:
    """What the reports on rectified networks found."""
    lines = []
    for data, runs in found.reports.items():
        of = {key: np.array([run[key] for run in runs]) for key in runs[0]}
        ends = [f"{(of[f'end at {factor:g}'] < np.log(2)).sum()} of {len(runs)}" for factor in FACTORS]
        share = of["on_colours"]
        means = [f"{of[key].mean():.3f}" for key in ("before", "after", "grey")]
        inks = f"{share.min():.2f} to {share.max():.2f}"
        lines.append([TITLES[data], str(len(runs)), inks, *means, f"{of['bound'].mean():.2f}", *ends])
    headings = ["data", "networks", "on the inks", "as trained", "after `project_out`", "after it, grey pictures"]
    return grid([*headings, "largest stable step", *(f"{factor:g} times that step" for factor in FACTORS)], lines)


TITLE = "Reversed accuracy of networks trained on coloured pictures"
NOTE = (
    "Means and 95 % intervals over {seeds} seeds; plain SGD, cross-entropy. The colour agrees with the label with probability "
    f"{SIGN_CHANGES[0]:g} and {SIGN_CHANGES[1]:g} in the two environments, and is reversed in the test. Step size and strength "
    "are chosen for each method by the worse training environment on validation rows."
)


DRAWN = ("one environment", "amplified", "V-REx", "GroupDRO", "IRMv1", "no colour", "pooled")
"""As many as there are colours; Fish is in the tables."""


def picture(found: MapResults) -> Figure:
    """A panel for each data set: reversed accuracy by network and method."""
    panels = []
    for data, title in TITLES.items():
        networks = [network for network in NETWORKS if found.rows(data, network)]
        if networks:
            series = [_dots(found, data, networks, method, i) for i, method in enumerate(DRAWN)]
            chance = Marker(0.5, "guessing", axis="x", role="bound")
            panels.append(
                Panel(
                    title=title,
                    xlabel="accuracy, colour reversed",
                    ylabel="",
                    series=[*series, chance],
                    height=0.5 * len(networks) + 0.4,
                )
            )
    return Figure(title=TITLE, panels=panels, note="", columns=2)


def _dots(found: MapResults, data: str, networks: Sequence[str], method: str, colour: int) -> Dots:
    have = [network for network in networks if method in found.rows(data, network)]
    low, middle, high = (
        np.array([found.rows(data, network)[method]["reversed"][i] for network in have]) for i in range(3)
    )
    return Dots(have, middle, method, low=low, high=high, colour=colour)
