"""The three laboratories, one file each, and the settings of papers that they offer."""

import warnings
from collections.abc import Iterator

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.experiments import registry
from gyrostat.experiments.papers import LabPreset
from gyrostat.lab.declarations import Lab, Preset
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


def all_presets() -> dict[str, list[Preset]]:
    """The presets of every laboratory: those of the built-in papers, then those of installed and given ones.

    A plug-in that cannot be imported, and a preset that its laboratory cannot read, are left out with a warning.
    """
    presets: dict[str, list[Preset]] = {name: [] for name in LABS}
    for paper, preset in _declared_presets():
        try:
            lab_of(preset.lab).read(preset.values)
        except GyrostatError as error:
            warnings.warn(f"the preset {preset.name!r} of paper {paper!r} is left out: {error}", stacklevel=2)
            continue
        shown = Preset(name=f"{paper}/{preset.name}", title=preset.title, values=dict(preset.values), note=preset.note)
        presets[preset.lab].append(shown)
    for name, lab in LABS.items():
        declared = {preset.name for preset in presets[name]}
        presets[name] = [preset for preset in lab.presets() if preset.name not in declared] + presets[name]
    return presets


def _declared_presets() -> Iterator[tuple[str, LabPreset]]:
    for paper in registry.paper_names():
        try:
            yield from ((paper, preset) for preset in registry.find_paper(paper).presets)
        except GyrostatError as error:
            warnings.warn(f"the presets of paper {paper!r} are left out: {error}", stacklevel=2)
