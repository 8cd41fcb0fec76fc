"""The registry of papers: built in, installed (entry points ``gyrostat.papers``), and given as files or modules."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.experiments.experiment import Experiment
from gyrostat.experiments.paper_files import import_object, imported_module, is_file_address, split_address
from gyrostat.experiments.papers import Paper

GROUP = "gyrostat.papers"
PAPERS = {name: f"gyrostat.papers.{name}:PAPER" for name in ("xu2024", "xiong2024", "wang2023")}
PAPERS["studies"] = "gyrostat.studies:PAPER"
"""The built-in papers, and the studies beyond them: name -> address."""


class GivenPaper(NamedTuple):
    """A paper that was given as a file or a module: its address, and the reference as the user wrote it."""

    address: str
    reference: str


_given: dict[str, GivenPaper] = {}
"""Papers that were given in this process, by name."""

FILE = re.compile(r"(?P<address>.+?\.py(:\w+)?)(/(?P<experiment>[^/]+))?")
MODULE = re.compile(r"(?P<address>[\w.]+:\w+)(/(?P<experiment>[^/]+))?")


def installed_papers() -> dict[str, list[str]]:
    """The addresses of papers that installed packages offer, by name; one name may be offered more than once."""
    found: dict[str, list[str]] = {}
    for point in importlib.metadata.entry_points(group=GROUP):
        addresses = found.setdefault(point.name, [])
        if point.value not in addresses:  # a package that is found twice on the path is still one package
            addresses.append(point.value)
    return found


def paper_names() -> list[str]:
    """The names of all papers: built in, installed, given.

    >>> paper_names()[:4]
    ['xu2024', 'xiong2024', 'wang2023', 'studies']
    """
    return list(dict.fromkeys([*PAPERS, *installed_papers(), *_given]))


def paper_address(name: str) -> str:
    """Where the paper of this name is; a name that two papers have is refused."""
    errors.choice("paper", name, paper_names())
    return _only_one(name, _known_addresses(name))


def _known_addresses(name: str) -> list[str]:
    built_in = [PAPERS[name]] if name in PAPERS else []
    given = [_given[name].address] if name in _given else []
    return [*built_in, *installed_papers().get(name, []), *given]


def _only_one(name: str, addresses: Iterable[str]) -> str:
    first, *others = dict.fromkeys(addresses)
    for other in others:
        if not _same_code(first, other):
            raise GyrostatError(
                f"two papers are named {name!r} ({first} and {other}): rename or uninstall one of them."
            )
    return first


def _same_code(first: str, second: str) -> bool:
    """Whether two addresses are of one object, as those of a file and of the package that it is installed from."""
    if split_address(first)[1] != split_address(second)[1]:
        return False
    files = [imported_module(address).__file__ for address in (first, second)]
    return files[0] is not None and files[0] == files[1]


def load_paper(address: str) -> Paper:
    """The paper at an address.

    >>> load_paper("gyrostat.papers.wang2023:PAPER").link
    'https://arxiv.org/abs/2305.16038'
    """
    paper = import_object(address)
    if not isinstance(paper, Paper):
        where, name = split_address(address)
        raise GyrostatError(f"{name} of {where} must be a Paper; got {errors.shown(paper)}.")
    return paper


def find_paper(name: str) -> Paper:
    """The paper of this name.

    >>> find_paper("xu2024").link
    'https://arxiv.org/abs/2403.01420'
    """
    address = paper_address(name)
    paper = load_paper(address)
    if paper.name != name:
        raise GyrostatError(
            f"the entry point {name!r} of {GROUP} leads to {address}, which is named {paper.name!r}: give both one name."
        )
    return paper


def add_paper(reference: str) -> str:
    """Make a paper in a file (``mypaper.py``, ``mypaper.py:NAME``) or a module (``module:NAME``) known; returns its name.

    A paper that has the name of another one is refused, because results are stored by name.
    """
    address = reference
    if is_file_address(reference):
        where, name = split_address(reference)
        address = f"{Path(where).absolute()}:{name}"
    paper = load_paper(address)
    _only_one(paper.name, [*_known_addresses(paper.name), address])
    _given[paper.name] = GivenPaper(address, reference)
    return paper.name


def resolve(reference: str) -> tuple[str, str]:
    """The name of the paper and of the experiment (or an empty text) that a user's reference means.

    A reference is the name of a paper, a file or ``module:NAME``, and perhaps an experiment after a slash.

    >>> resolve("xu2024/fig3"), resolve("gyrostat.papers.xu2024:PAPER")
    (('xu2024', 'fig3'), ('xu2024', ''))
    """
    match = FILE.fullmatch(reference) or MODULE.fullmatch(reference)
    if match:
        return add_paper(match["address"]), match["experiment"] or ""
    paper, _, experiment = reference.partition("/")
    if paper not in paper_names() and Path(reference).is_dir():
        example = Path(reference) / f"{Path(reference).resolve().name}.py"
        raise GyrostatError(f"{reference!r} is a folder: give the Python file of the paper, as in {example}.")
    return paper, experiment


def reference_to(name: str) -> str:
    """What to write on the command line to name this paper: as it was given, or else its name."""
    return _given[name].reference if name in _given else name


def experiments(paper: str) -> dict[str, Experiment]:
    """The experiments of a paper by name, in the order of the paper.

    >>> "fig3" in experiments("xu2024")
    True
    """
    return {experiment.name: experiment for experiment in find_paper(paper).experiments}
