"""What must be true of every figure on both canvases; for the figures of tests and of all experiments."""

from __future__ import annotations

import itertools
import json
import warnings

import plotly.graph_objects as go
from matplotlib.backends.backend_agg import FigureCanvasAgg

from gyrostat.figures.matplotlib_renderer import draw
from gyrostat.figures.plotly_renderer import plotly_panels


def drawn(figure, width=None):
    """The matplotlib canvas, on which nothing overlaps or is cut, and matplotlib had nothing to complain of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        canvas = draw(figure, width)
        pen = FigureCanvasAgg(canvas).get_renderer()
        canvas.draw(pen)
    texts = [axes.get_legend() for axes in canvas.axes] + canvas.texts
    boxes = [text.get_window_extent(pen) for text in texts]
    for axes in canvas.axes:
        boxes.append(axes.get_tightbbox(pen, bbox_extra_artists=[axes.title, axes.xaxis.label]))
        for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
            if all(label.get_rotation() == 0 for label in labels):
                seen = [box for label in labels if (box := label.get_window_extent(pen)).width]
                assert not any(overlap(a, b) for a, b in itertools.pairwise(seen)), axes.get_title()
    assert not any(overlap(a, b) for a, b in itertools.combinations(boxes, 2))
    across, down = canvas.canvas.get_width_height()
    assert all(b.x0 >= -1 and b.y0 >= -1 and b.x1 <= across + 1 and b.y1 <= down + 1 for b in boxes if b.width)
    return canvas


def overlap(a, b):
    return min(a.x1, b.x1) - max(a.x0, b.x0) > 2 and min(a.y1, b.y1) - max(a.y0, b.y0) > 2


def pages(figure):
    """The dictionaries for plotly, which takes them, and whose legends know every trace and shape."""
    panels = plotly_panels(figure)
    for panel in panels:
        go.Figure(panel["data"], panel["layout"])  # refuses unknown names and bad values
        for kind, parts in (("traces", panel["data"]), ("shapes", panel["layout"].get("shapes", []))):
            assert sorted(i for entry in panel["entries"] for i in entry[kind]) == list(range(len(parts)))
    assert json.dumps(panels, allow_nan=False)
    return panels
