"""An image with 70 % of its pixels missing, restored as a matrix, and with its overlapping patches as rows of a table."""

from __future__ import annotations

import base64
import zlib
from pathlib import Path
from typing import Any

import numpy as np

SIDE, MISSING = 9, 0.7
"""The side of a patch in pixels; the share of pixels missing."""
IMAGE = "images/completion-image.png"


def restored(size: int = 96) -> dict[str, Any]:
    """The images as text, the peak signal-to-noise ratio of the two restorations, and the rank of the patches."""
    from skimage.data import camera

    from gyrostat.estimators import LowRankImputer

    whole = camera()[60 : 60 + 2 * size : 2, 150 : 150 + 2 * size : 2] / 255.0
    holes = np.where(np.random.default_rng(0).random(whole.shape) < MISSING, np.nan, whole)
    plain = LowRankImputer(random_state=0).fit_transform(holes)
    patches = np.lib.stride_tricks.sliding_window_view(holes, (SIDE, SIDE))
    table = patches.reshape(-1, SIDE * SIDE)
    model = LowRankImputer(random_state=0).fit(table)
    by_patches = np.where(np.isnan(holes), averaged(model.predict(table).reshape(patches.shape)), holes)
    images = {"holes": holes, "matrix": plain, "patches": by_patches, "whole": whole}
    return {
        "side": size,
        "rank": int(model.rank_),
        "images": {name: packed(image) for name, image in images.items()},
        "matrix": decibels(plain, whole),
        "patches": decibels(by_patches, whole),
    }


def averaged(patches: np.ndarray) -> np.ndarray:
    """The image whose pixels are the means over all patches that contain them.

    >>> averaged(np.lib.stride_tricks.sliding_window_view(np.arange(12.0).reshape(3, 4), (2, 2))).tolist()[1]
    [4.0, 5.0, 6.0, 7.0]
    """
    rows, columns, high, wide = patches.shape
    total = np.zeros((rows + high - 1, columns + wide - 1))
    count = np.zeros_like(total)
    for i in range(high):
        for j in range(wide):
            total[i : i + rows, j : j + columns] += patches[:, :, i, j]
            count[i : i + rows, j : j + columns] += 1
    return total / count


def decibels(image: np.ndarray, truth: np.ndarray) -> float:
    """The peak signal-to-noise ratio over all pixels.

    >>> round(decibels(np.full((2, 2), 0.1), np.zeros((2, 2))), 6)
    20.0
    """
    return float(-10 * np.log10(np.mean((image - truth) ** 2)))


def packed(image: np.ndarray) -> str:
    """A grey image in 256 levels as text; missing pixels are white."""
    levels = np.round(255 * np.clip(np.nan_to_num(image, nan=1.0), 0, 1)).astype(np.uint8)
    return base64.b64encode(zlib.compress(levels.tobytes())).decode()


def unpacked(text: str, side: int) -> np.ndarray:
    """The image of :func:`packed`.

    >>> unpacked(packed(np.eye(2)), 2).tolist()
    [[255, 0], [0, 255]]
    """
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=np.uint8).reshape(side, side)


def values(restoration: dict[str, Any]) -> dict[str, Any]:
    """What the page shows: the two qualities, and the rank of the patches."""
    return {
        "image-matrix": restoration["matrix"],
        "image-patches": restoration["patches"],
        "image-rank": restoration["rank"],
    }


def image_picture(restoration: dict[str, Any], path: Path) -> None:
    """Draw the observed pixels, both restored images, and the image."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    titles = {
        "holes": f"{MISSING:.0%} of the pixels missing",
        "matrix": f"the image as a matrix ({restoration['matrix']:.1f} dB)",
        "patches": f"its {SIDE} x {SIDE} patches as rows ({restoration['patches']:.1f} dB)",
        "whole": "the image",
    }
    for axes, (name, title) in zip(figure.subplots(1, 4), titles.items(), strict=True):
        axes.imshow(unpacked(restoration["images"][name], restoration["side"]), cmap="gray", vmin=0, vmax=255)
        axes.set_title(title)
        axes.set_axis_off()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
