"""PyTorch tools: batches of one environment each for an existing training loop, and a recorder of what it learns.

Needs the extra ``torch``; ``import gyrostat`` alone never imports PyTorch.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as missing:
    raise ImportError("gyrostat.torch needs PyTorch: install it with pip install 'gyrostat[torch]'.") from missing

from gyrostat.torch.amplified_optimiser import AmplifiedHeterogeneity
from gyrostat.torch.recorder import TrajectoryRecorder
from gyrostat.torch.sampler import EnvironmentBatchSampler

__all__ = ["AmplifiedHeterogeneity", "EnvironmentBatchSampler", "TrajectoryRecorder"]
