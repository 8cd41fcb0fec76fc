"""Environments: what is true everywhere, and what changes from one environment to the next."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
