"""PyTorch tools: batches of one environment each for an existing training loop, and a recorder of what it learns.

Needs the extra ``torch``; ``import gyrostat`` alone never imports PyTorch.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as missing:
    raise ImportError("gyrostat.torch needs PyTorch: install it with pip install 'gyrostat[torch]'.") from missing

from gyrostat.torch.amplified_optimiser import AmplifiedHeterogeneity
from gyrostat.torch.environment_report import EnvironmentReport, environment_report, project_out
from gyrostat.torch.recorder import TrajectoryRecorder
from gyrostat.torch.report_callbacks import lightning_report_callback, trainer_report_callback
from gyrostat.torch.sampler import EnvironmentBatchSampler

__all__ = [
    "AmplifiedHeterogeneity",
    "EnvironmentBatchSampler",
    "EnvironmentReport",
    "TrajectoryRecorder",
    "environment_report",
    "lightning_report_callback",
    "project_out",
    "trainer_report_callback",
]
