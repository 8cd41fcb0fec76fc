"""The three laboratories, by name."""

from gyrostat import errors
from gyrostat.live.lab import Lab
from gyrostat.live.labs.completion import COMPLETION
from gyrostat.live.labs.environments import ENVIRONMENTS
from gyrostat.live.labs.factors import FACTORS

LABS: dict[str, Lab] = {lab.name: lab for lab in (ENVIRONMENTS, FACTORS, COMPLETION)}


def lab_of(name: str) -> Lab:
    """The laboratory of this name.

    >>> lab_of("factors").title
    'One factor or two'
    """
    return LABS[errors.choice("lab", name, LABS)]
