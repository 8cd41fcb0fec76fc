"""PyTorch tools: batches of one environment each for an existing training loop, and a recorder of what it learns.

Needs the extra ``torch``; ``import gyrostat`` alone never imports PyTorch.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as missing:
    raise ImportError("gyrostat.torch needs PyTorch: install it with pip install 'gyrostat[torch]'.") from missing

from gyrostat.torch.amplified_optimiser import AmplifiedHeterogeneity
from gyrostat.torch.environment_audit import audit_environments
from gyrostat.torch.labelled_dataset import EnvironmentCollate, LabelledDataset, environment_of
from gyrostat.torch.recorder import TrajectoryRecorder
from gyrostat.torch.sampler import EnvironmentBatchSampler
from gyrostat.torch.sharding import prepare_loader
from gyrostat.torch.stream import EnvironmentBatchStream

__all__ = [
    "AmplifiedHeterogeneity",
    "EnvironmentBatchSampler",
    "EnvironmentBatchStream",
    "EnvironmentCollate",
    "LabelledDataset",
    "TrajectoryRecorder",
    "audit_environments",
    "environment_of",
    "prepare_loader",
]
