"""Rows with the labels of their sources, and batches in which every row comes from one source. Without JAX and PyTorch.

:class:`GrainEnvironmentBatches` is for Grain, the data loader of JAX users; ``gyrostat.torch`` has those for PyTorch.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
