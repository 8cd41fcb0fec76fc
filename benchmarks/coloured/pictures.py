"""Pictures in two colours: the data of the map, many random splits at once.

MNIST and Fashion-MNIST are read from the folder that ``make map-data`` fills; scikit-learn's digits are always there.
"""

from __future__ import annotations

import functools
import gzip
import os
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

import torch

DATA_FOLDER = Path(os.environ.get("GYROSTAT_MAP_DATA", ".cache/map-data"))
"""Where ``make map-data`` puts the pictures."""
NOISE = 0.25
"""The share of training labels that are wrong, as in coloured MNIST."""
COMPONENTS = {"digits": 10, "mnist": 20, "fashion": 20}
"""The number of principal components of the grey picture that a network on components sees."""
ROWS = {"digits": (1000, 300, 497), "mnist": (4000, 2000, 2000), "fashion": (4000, 2000, 2000)}
"""Rows for training, for validation and for the test."""
VIEWS = ("agreeing", "random", "reversed", "grey", "published")
"""Test pictures by their colour. ``published``: as in the papers, it agrees with the noisy label with probability 0.1."""
AGREES = {"agreeing": 1.0, "random": 0.5, "reversed": 0.0, "published": 0.1}


class ColouredPictures(NamedTuple):
    """Splits of one data set, one for each seed: rows (seeds, rows, features); labels are 1 and -1.

    The first half of the training and of the validation rows is of the first environment, the second half of the second.
    """

    train: torch.Tensor
    train_labels: torch.Tensor
    grey_train: torch.Tensor
    validation: torch.Tensor
    validation_labels: torch.Tensor
    grey_validation: torch.Tensor
    tests: dict[str, tuple[torch.Tensor, torch.Tensor]]


def available(name: str) -> bool:
    """Whether the pictures of a data set can be read."""
    return name == "digits" or (DATA_FOLDER / name).is_dir()


@functools.cache
def grey_pictures(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Pictures (n, side, side) of mean square 1, and their classes: 8 x 8 digits, or 14 x 14 from 28 x 28 by means of four."""
    if name == "digits":
        from sklearn.datasets import load_digits

        flat, classes = load_digits(return_X_y=True)
        pictures = flat.reshape(-1, 8, 8)
    else:
        pictures, classes = (_idx(DATA_FOLDER / name, f"train-{kind}") for kind in ("images-idx3", "labels-idx1"))
        pictures = pictures.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4))
    return (pictures / np.sqrt((pictures**2.0).mean())).astype(np.float32), classes


def _idx(folder: Path, start: str) -> np.ndarray:
    """An array in the IDX format of MNIST: two zeros, a type, the number of dimensions, their sizes, the bytes."""
    (path,) = folder.glob(f"{start}*")
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    sizes = np.frombuffer(content, ">u4", count=content[3], offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * content[3]).reshape(sizes)


def ink(labels: np.ndarray, agreement: np.ndarray | float, rng: np.random.Generator) -> np.ndarray:
    """Red and green ink (n, 2), of mean square 1 each: red agrees with the label 1, green with -1."""
    red = np.where(rng.random(len(labels)) < agreement, labels, -labels) > 0
    return (np.sqrt(2) * np.stack([red, ~red], axis=1)).astype(np.float32)


def coloured(
    name: str, agreements: tuple[float, float], seeds: int, *, as_pictures: bool, wrong: float = 0.0
) -> ColouredPictures:
    """Random splits, coloured: the colour agrees with the label with the given probabilities in the two environments.

    A network sees the principal components of the grey picture and the ink of each colour; or, ``as_pictures``, a red and a
    green picture (2 side^2). In a share ``wrong`` of the training rows the environment is exchanged for the other one.
    """
    splits = [_split(name, agreements, seed, as_pictures, wrong) for seed in range(seeds)]
    tests = {
        view: (
            torch.stack([split["tests"][view][0] for split in splits]),
            torch.stack([split["tests"][view][1] for split in splits]),
        )
        for view in VIEWS
    }
    fields = [field for field in ColouredPictures._fields if field != "tests"]
    return ColouredPictures(**{field: torch.stack([split[field] for split in splits]) for field in fields}, tests=tests)


def _split(name: str, agreements: tuple[float, float], seed: int, as_pictures: bool, wrong: float) -> dict:
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    pictures, classes = grey_pictures(name)
    n, m, k = ROWS[name]
    chosen = rng.permutation(len(classes))[: n + m + k]
    truth = np.where(classes[chosen] >= 5, 1.0, -1.0).astype(np.float32)
    noisy = truth * np.where(rng.random(len(truth)) < NOISE, -1, 1).astype(np.float32)
    shapes = pictures[chosen] if as_pictures else _components(pictures[chosen], n, COMPONENTS[name])
    grey = np.full((len(chosen), 2), np.sqrt(0.5), np.float32)
    found: dict = {}
    for field, rows in (("train", slice(0, n)), ("validation", slice(n, n + m))):
        size = rows.stop - rows.start
        environments = np.arange(size) // (size // 2)
        if field == "train":
            environments = np.where(rng.random(size) < wrong, 1 - environments, environments)
        colours = ink(noisy[rows], np.asarray(agreements)[environments], rng)
        found[field] = _painted(shapes[rows], colours)
        found[f"{field}_labels"] = torch.as_tensor(noisy[rows])
        found[f"grey_{field}"] = _painted(shapes[rows], grey[rows])
    rows = slice(n + m, n + m + k)
    found["tests"] = {"grey": (_painted(shapes[rows], grey[rows]), torch.as_tensor(truth[rows]))}
    for view, agreement in AGREES.items():
        labels = noisy[rows] if view == "published" else truth[rows]
        found["tests"][view] = _painted(shapes[rows], ink(labels, agreement, rng)), torch.as_tensor(labels)
    return found


def _painted(shapes: np.ndarray, colours: np.ndarray) -> torch.Tensor:
    """Components beside the inks; or a picture in each ink, as one row."""
    if shapes.ndim == 2:
        return torch.as_tensor(np.hstack([shapes, colours]))
    return torch.as_tensor((colours[:, :, None, None] * shapes[:, None]).reshape(len(shapes), -1))


def _components(pictures: np.ndarray, training_rows: int, count: int) -> np.ndarray:
    """Principal components of the training rows, scaled to variance 1."""
    flat = pictures.reshape(len(pictures), -1).astype(np.float64)
    centred = flat - flat[:training_rows].mean(axis=0)
    variances, directions = np.linalg.eigh(np.cov(centred[:training_rows].T))
    return (centred @ (directions / np.sqrt(np.maximum(variances, 1e-9)))[:, : -count - 1 : -1]).astype(np.float32)
