"""The three laboratories, one file each."""

from gyrostat import errors
from gyrostat.lab.declarations import Lab
from gyrostat.lab.laboratories.deep_completion import COMPLETION
from gyrostat.lab.laboratories.environments import ENVIRONMENTS
from gyrostat.lab.laboratories.factors import FACTORS

LABS: dict[str, Lab] = {lab.name: lab for lab in (ENVIRONMENTS, FACTORS, COMPLETION)}


def lab_of(name: str) -> Lab:
    """The laboratory of this name.

    >>> lab_of("factors").title
    'One factor or two'
    """
    return LABS[errors.choice("lab", name, LABS)]
