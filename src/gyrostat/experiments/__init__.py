"""Experiments: declared computations with claims, papers, the statistics that claims use, and the registry of papers.

Names are imported on first use.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
