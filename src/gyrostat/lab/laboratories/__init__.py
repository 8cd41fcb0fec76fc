"""The three laboratories, one file each, and the settings of papers that they offer."""

import warnings
from dataclasses import replace

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.experiments import registry
from gyrostat.experiments.papers import LabPreset
from gyrostat.lab.declarations import Lab
from gyrostat.lab.laboratories.deep_completion import DeepCompletion
from gyrostat.lab.laboratories.environments import SeveralEnvironments
from gyrostat.lab.laboratories.factors import OneOrTwoFactors

LABS: dict[str, Lab] = {lab.name: lab for lab in (SeveralEnvironments(), OneOrTwoFactors(), DeepCompletion())}


def lab_of(name: str) -> Lab:
    """The laboratory of this name.

    >>> lab_of("factors").title
    'One factor or two'
    """
    return LABS[errors.choice("lab", name, LABS)]


def all_presets() -> dict[str, list[LabPreset]]:
    """The presets of every laboratory, as ``paper/figure``: those of the built-in papers, of installed and of given ones.

    A plug-in that cannot be imported, and a preset that its laboratory cannot read, are left out with a warning.
    """
    presets: dict[str, list[LabPreset]] = {name: [] for name in LABS}
    for paper in registry.paper_names():
        try:
            declared = registry.find_paper(paper).presets
        except GyrostatError as error:
            warnings.warn(f"the presets of paper {paper!r} are left out: {error}", stacklevel=2)
            continue
        for preset in declared:
            try:
                lab_of(preset.lab).read(preset.values)
            except GyrostatError as error:
                warnings.warn(f"the preset {preset.name!r} of paper {paper!r} is left out: {error}", stacklevel=2)
            else:
                presets[preset.lab].append(replace(preset, name=f"{paper}/{preset.name}"))
    return presets
