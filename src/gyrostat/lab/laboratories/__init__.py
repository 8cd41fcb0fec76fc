"""The three laboratories, one file each, and the settings of papers that they offer."""

import warnings
from collections.abc import Iterator

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.experiments import registry
from gyrostat.experiments.declarations import LabPreset
from gyrostat.lab.declarations import Lab, Preset
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


def all_presets() -> dict[str, list[Preset]]:
    """The presets of every laboratory: those of the built-in papers, then those of installed and given ones.

    A plug-in that cannot be imported, and a preset that its laboratory cannot read, are left out with a warning.
    """
    found = {name: list(lab.presets()) for name, lab in LABS.items()}
    for paper, preset in _presets_of_others():
        try:
            lab_of(preset.lab).read(preset.values)
        except GyrostatError as error:
            warnings.warn(f"the preset {preset.name!r} of paper {paper!r} is left out: {error}", stacklevel=2)
            continue
        shown = Preset(name=f"{paper}/{preset.name}", title=preset.title, values=dict(preset.values), note=preset.note)
        found[preset.lab].append(shown)
    return found


def _presets_of_others() -> Iterator[tuple[str, LabPreset]]:
    for paper in registry.paper_names():
        if paper not in registry.PAPERS:
            try:
                yield from ((paper, preset) for preset in registry.find_paper(paper).presets)
            except GyrostatError as error:
                warnings.warn(f"the presets of paper {paper!r} are left out: {error}", stacklevel=2)
