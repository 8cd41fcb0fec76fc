"""A recorder of what a training loop learns along chosen directions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import torch
from gyrostat import errors
from gyrostat.errors import GyrostatError

if TYPE_CHECKING:
    import xarray as xr

    Watched = torch.Tensor | Callable[[], torch.Tensor]


class TrajectoryRecorder:
    """Records ``W V`` for a parameter W (..., d) and bases V (d, r) of subspaces, and the norm of the part in no subspace.

    ``watched`` is a parameter whose last axis is that of the features (as in ``nn.Linear``), or a function that returns such a
    tensor, for instance ``lambda: net.U @ net.U.T``. ``subspaces`` maps names to bases with orthonormal columns. Call
    :meth:`record`, or :meth:`attach` the recorder to an optimiser: then it records after each ``every``-th step.

    Parameters
    ----------
    watched
        A parameter whose last axis is that of the features, or a function that returns such a tensor.
    subspaces
        Names and bases with orthonormal columns.
    every
        Record after each ``every``-th step, when attached.

    >>> weight = torch.tensor([3.0, 4.0, 0.5], requires_grad=True)
    >>> recorder = TrajectoryRecorder(weight, {"invariant": np.eye(3)[:, :1], "spurious": np.eye(3)[:, 1:2]})
    >>> recorder.record(0)
    >>> found = recorder.result()
    >>> found.invariant.values.tolist(), found.spurious.values.tolist(), found.rest.values.tolist()
    ([[3.0]], [[4.0]], [0.5])
    """

    def __init__(self, watched: Watched, subspaces: Mapping[str, Any], *, every: int = 1):
        if not (isinstance(watched, torch.Tensor) or callable(watched)):
            raise GyrostatError(
                f"watched must be a tensor or a function that returns one; got {errors.shown(watched)}."
            )
        if not isinstance(subspaces, Mapping) or not subspaces:
            raise GyrostatError(
                f"subspaces must name at least one basis, as in {{'spurious': V}}; got {errors.shown(subspaces)}."
            )
        if taken := sorted({"rest", "step"} & set(subspaces)):
            raise GyrostatError(
                f"subspaces cannot be named {taken[0]!r}, which the result itself uses: choose another."
            )
        self.watched, self.every = watched, errors.integer("every", every, least=1)
        self.bases = {name: errors.orthonormal(f"subspaces[{name!r}]", V) for name, V in subspaces.items()}
        if len({V.shape[0] for V in self.bases.values()}) > 1:
            sizes = ", ".join(f"{name!r}: {V.shape[0]}" for name, V in self.bases.items())
            raise GyrostatError(f"subspaces must have bases with the same number of rows; got {sizes}.")
        # Subspaces may overlap, so the rest is the part outside their joint span.
        left, s, _ = np.linalg.svd(np.hstack(list(self.bases.values())), full_matrices=False)
        self._span = left[:, s > 1e-10]
        self._steps: list[int] = []
        self._values: dict[str, list[np.ndarray]] = {name: [] for name in (*self.bases, "rest")}

    def record(self, step: int) -> None:
        """Record the present values of the parameter under the number ``step``."""
        with torch.no_grad():
            tensor = self.watched if isinstance(self.watched, torch.Tensor) else self.watched()
            W = tensor.detach().to("cpu", torch.float64).numpy()
        if W.ndim == 0 or W.shape[-1] != len(self._span):
            raise GyrostatError(
                f"watched has shape {W.shape}, but the bases of subspaces have {len(self._span)} rows: "
                "the last axis of watched must have that length."
            )
        self._steps.append(errors.integer("step", step))
        for name, V in self.bases.items():
            self._values[name].append(W @ V)
        self._values["rest"].append(np.asarray(np.linalg.norm(W - W @ self._span @ self._span.T)))

    def attach(self, optimizer: torch.optim.Optimizer) -> Any:
        """Record now, as step 0, and after each ``every``-th step of ``optimizer``. ``.remove()`` of the result stops it."""
        steps = 0

        def after(*_: Any) -> None:
            nonlocal steps
            steps += 1
            if steps % self.every == 0:
                self.record(steps)

        self.record(0)
        return optimizer.register_step_post_hook(after)

    def result(self) -> xr.Dataset:
        """The recorded values: one variable per subspace, with ``step`` as the first dimension, and ``rest``."""
        import xarray as xr

        if not self._steps:
            raise GyrostatError("nothing has been recorded: call record(step), or attach(optimizer) before training.")
        data: dict[str, Any] = {}
        for name, V in self.bases.items():
            values = np.stack(self._values[name])
            outer = [f"axis_{i}" for i in range(values.ndim - 2)]
            data[name] = (("step", *outer, f"{name}_direction"), values.reshape(*values.shape[:-1], V.shape[1]))
        data["rest"] = ("step", np.stack(self._values["rest"]))
        return xr.Dataset(data, coords={"step": self._steps})
