"""The page of the map and its picture, from the records of the suite."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gyrostat.benchmarks.coloured.pictures import COMPONENTS, NOISE, ROWS
from gyrostat.benchmarks.coloured.study import AVERAGE, BATCH, CANONICAL, SIGN_CHANGES, STEP_SIZES, MapSetting
from gyrostat.benchmarks.coloured.words import LEFT_OUT, SETTING, USE, WHY
from gyrostat.benchmarks.records import BenchmarkRecord, markdown_table
from gyrostat.figures.declarations import Dots, Figure, Marker, Panel
from gyrostat.figures.matplotlib_renderer import render

NAME, PICTURE = "coloured-digits.md", "coloured-map"
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


def write(records: Sequence[BenchmarkRecord], notes: Sequence[str], out: Path) -> None:
    """Write the page to ``out`` and its picture to ``out/images``."""
    found = MapResults(records)
    out.mkdir(parents=True, exist_ok=True)
    (out / NAME).write_text(page(found, notes))
    if panels := picture(found).panels:
        render(
            Figure(title=TITLE, panels=panels, note=NOTE.format(seeds=found.seeds), columns=2), out / "images" / PICTURE
        )


def page(found: MapResults, notes: Sequence[str]) -> str:
    """The whole page."""
    parts = [
        "# Coloured digits: which batches and which steps make a network ignore the colour",
        _opening(found),
        f"![Reversed accuracy by network and method](images/{PICTURE}.png)",
        "## What was compared",
        SETTING.format(
            noise=f"{100 * NOISE:g} %",
            high=f"{SIGN_CHANGES[0]:g}",
            low=f"{SIGN_CHANGES[1]:g}",
            batch=BATCH,
            steps=found.steps,
            seeds=found.seeds,
            average=AVERAGE,
            components=", ".join(f"{TITLES[name]} {count}" for name, count in COMPONENTS.items()),
            rows="; ".join(f"{TITLES[name]} {n}, {m} and {k}" for name, (n, m, k) in ROWS.items()),
            sizes="; ".join(f"{name} {', '.join(f'{s:g}' for s in steps)}" for name, steps in STEP_SIZES.items()),
        ),
        "## By network",
        "Accuracy on test pictures with the colour reversed, plain SGD, cross-entropy; in brackets the gain over pooled "
        "batches with its 95 % interval, paired by seed.",
        *(
            f"**{title}**\n\n{_by_network(found, data)}"
            for data, title in TITLES.items()
            if found.rows(data, "rectified")
        ),
        "## By loss and optimiser",
        "Gain over pooled batches of the same optimiser, MNIST.",
        _by_optimiser(found),
        "## Points that were known before, and what came out",
        "Reversed accuracy of pooled batches and of the method, and the gain. *Before*: a prototype on digits.",
        _known(found),
        "## Coloured MNIST as published: no change of sign",
        f"The colour agrees with probability {CANONICAL[0]:g} and {CANONICAL[1]:g}, and is therefore more "
        "informative than the shape in both environments. "
        "Accuracy on noisy test labels with agreement 0.1, as in the papers, where 0.75 is the best possible. "
        "Published: 0.171 for pooled training and 0.669 for IRM ([Arjovsky 2019](https://arxiv.org/abs/1907.02893)). Here "
        "step size and strength are chosen without a look at the test, and validation rows of the same two environments "
        "prefer whatever uses the colour.",
        _canonical(found),
        "## The order of environments, wrong environments, a placebo",
        _orders(found),
        "## How the choice matters",
        _choice(found),
        "## What `environment_report` finds",
        _reports(found),
        USE,
        WHY,
        "\n".join([LEFT_OUT, *(f"- {note}" for note in notes)]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _opening(found: MapResults) -> str:
    """Three points: when to use which."""

    def won(network: str, method: str) -> str:
        rows = found.rows("mnist", network)
        return f"{rows[method]['gain'][1]:+.2f}" if method in rows else "not run"

    alone, quadratic = won("diagonal", "one environment"), won("quadratic", "one environment")
    batches, steps = won("rectified", "one environment"), won("rectified", "amplified")
    pixels, filters = won("rectified on pictures", "amplified"), won("convolutional", "amplified")
    penalty, worst_first = won("rectified on pictures", "V-REx"), won("convolutional", "GroupDRO")
    return (
        "- **Weights that multiply each other** (diagonal and quadratic networks, factorised matrices): fill every batch from "
        "one environment and take a large step. That alone makes the network ignore the colour (reversed accuracy on MNIST "
        f"{alone} and {quadratic}).\n"
        f"- **Linear and rectified networks of a few features**: batches alone do little ({batches} if rectified). Put "
        f"`AmplifiedHeterogeneity` around plain SGD and visit the environments in turn ({steps}). On raw pixels amplified "
        f"steps do not help ({pixels} if rectified, {filters} if convolutional). Use V-REx or GroupDRO there, which need all "
        f"environments in every step ({penalty} for V-REx if rectified, {worst_first} for GroupDRO if convolutional).\n"
        "- **In every case** choose the step by the worst training environment on validation rows; their mean rewards the "
        "colour. If the association never changes its sign between your environments, no method below helps: add an "
        "environment in which it does, or remove the input."
    )


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


def _by_network(found: MapResults, data: str) -> str:
    lines = []
    for network in NETWORKS:
        rows = found.rows(data, network)
        if rows:
            lines.append([network, *(_cell(rows.get(method)) for method in METHODS)])
    return markdown_table(["network", *METHODS], lines)


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    return number(row["reversed"]) if row["method"] == "pooled" else f"{number(row['reversed'])} ({gain(row['gain'])})"


def _by_optimiser(found: MapResults) -> str:
    lines = []
    for network in ON_COMPONENTS:
        for loss in ("cross-entropy", "squared"):
            for optimiser in STEP_SIZES:
                rows = found.rows("mnist", network, loss=loss, optimiser=optimiser)
                if rows:
                    gains = [gain(rows[m]["gain"]) for m in ("one environment", "amplified", "V-REx")]
                    lines.append([network, loss, optimiser, number(rows["pooled"]["reversed"]), *gains])
    return markdown_table(["network", "loss", "optimiser", "pooled", "one environment", "amplified", "V-REx"], lines)


def _known(found: MapResults) -> str:
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
    return markdown_table(["point", "before", "here"], lines)


def _canonical(found: MapResults) -> str:
    lines = []
    for network in NETWORKS:
        rows = found.rows("mnist", network, agreements=CANONICAL)
        if rows:
            lines.append([network, *(number(rows[m]["published"]) if m in rows else "" for m in METHODS)])
    return markdown_table(["network", *METHODS], lines)


def _orders(found: MapResults) -> str:
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
    return markdown_table(["MNIST, cross-entropy, SGD", "one environment", "amplified"], lines)


def _choice(found: MapResults) -> str:
    """The accuracies when configurations are chosen by the mean over environments instead."""
    lines = []
    for network in NETWORKS:
        if rows := found.rows("mnist", network):
            cells = [
                f"{number(rows[m]['by_mean'])} ({number(rows[m]['reversed'])})" if m in rows else "" for m in METHODS
            ]
            lines.append([network, *cells])
    table = markdown_table(["network", *METHODS], lines)
    return (
        "Step size and strength are chosen by the accuracy on validation rows in the *worse* of the two training "
        "environments. Choosing by the mean of both rewards the colour. The reversed accuracy on MNIST with that choice, and "
        f"in brackets that of the tables above:\n\n{table}"
    )


def _reports(found: MapResults) -> str:
    """What the reports on rectified networks found, as sentences."""
    lines = []
    for data, runs in found.reports.items():

        def of(key: str, runs: list[dict[str, float]] = runs) -> np.ndarray:
            return np.array([run[key] for run in runs])

        share, before, after = of("on_colours"), of("before"), of("after")
        ends = [key for key in runs[0] if key.startswith("end at")]
        kept = ", ".join(
            f"{(of(key) < np.log(2)).sum()} of {len(runs)} at {key.removeprefix('end at ')} times" for key in ends
        )
        lines.append(
            f"- {TITLES[data]}, {len(runs)} rectified networks trained on pooled batches: the first direction lies "
            f"{share.min():.2f} to {share.max():.2f} on the two inks. `project_out` changes the reversed accuracy from "
            f"{before.mean():.3f} to {after.mean():.3f} without retraining (grey {of('grey').mean():.3f}). The largest "
            f"stable step is {of('bound').mean():.2f} on average; one environment per batch with larger steps ends below "
            f"the loss of a constant answer in {kept} that step: the bound is cautious."
        )
    return "\n".join(lines)


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


if __name__ == "__main__":
    content = json.loads(Path(sys.argv[1]).read_text())
    own = [{k: v for k, v in one.items() if k not in ("ratio", "meets")} for one in content]
    write([BenchmarkRecord(**one) for one in own if one["id"].startswith("coloured/")], (), Path(sys.argv[2]))
