"""An experiment is a class: what to compute, what to draw, and what is claimed.

The docstring of the class is the title and, after an empty line, a summary. ``compute`` makes labelled data, ``draw`` shows
them, and each method marked with :func:`~gyrostat.experiments.claims.claim` measures what decides a statement::

    class Forgetting(Experiment):
        \"\"\"What is learnt at M = 8

        HeteroSGD keeps the invariant signal and forgets the spurious one.
        \"\"\"

        source = "Mine 2026, Figure 1"
        sizes = {"seeds": (8, 60, 400)}

        def compute(self, run):
            problem = gs.Problem(gs.RandomEnvironments(20, law=gs.TwoPoint(spread=8.0)), gs.FreshGaussian(4000))
            return run.single(gs.HeteroSGD(0.05), problem, num_steps=200)

        def draw(self, ds):
            learnt, forgotten = band(ds.signal, "invariant"), band(ds.spurious, "spurious")
            return figure(panel("Along the path", "step", "share of the signal", learnt, forgotten))

        @claim("median spurious share at the end <= 0.1", spurious=(0, 0.1))
        def forgets(self, ds):
            \"\"\"HeteroSGD forgets the spurious signal.\"\"\"
            return median(last(ds.spurious))
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.experiments.claims import Claim, listed
from gyrostat.figures.declarations import Figure

if TYPE_CHECKING:
    from types import ModuleType

    import xarray as xr

Item = TypeVar("Item")

SIZES = ("smoke", "standard", "full")


class ExperimentRun:
    """What ``compute`` is given besides its settings: the seed, the number of runs, and where progress is reported.

    Parameters
    ----------
    seed
        The seed of the experiment.
    seeds
        The number of runs; None leaves it to :func:`gyrostat.run`.
    report
        A function of what is done and of all that is to be done.
    """

    def __init__(self, seed: int, seeds: int | None = None, report: Callable[[float, int], None] | None = None):
        self.seed, self.seeds, self.report = seed, seeds, report
        self._begin, self._length = 0.0, 1.0

    @cached_property
    def rng(self) -> np.random.Generator:
        """A generator of random numbers that belongs to the seed."""
        return np.random.default_rng(self.seed)

    def progress(self, done: float, total: int) -> None:
        """Report that ``done`` of ``total`` is done of what :meth:`over` is at."""
        if self.report is not None:
            self.report(self._begin + self._length * done / total, 1)

    def over(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items one by one, each an equal part of the progress."""
        items, begin, length = list(items), self._begin, self._length
        for i, item in enumerate(items):
            self._begin, self._length = begin + length * i / len(items), length / len(items)
            yield item
            self.progress(1, 1)
        self._begin, self._length = begin, length

    def single(self, algorithm: Any, problem: Any, **options: Any) -> xr.Dataset:
        """:func:`gyrostat.run` with this seed, number of runs and progress."""
        import gyrostat as gs

        return gs.run(algorithm, problem, **self._options(options))

    def grid(self, build: Callable[..., Any], axes: Mapping[str, Sequence[Any]], **options: Any) -> xr.Dataset:
        """:func:`gyrostat.run_grid` with this seed, number of runs and progress."""
        import gyrostat as gs

        return gs.run_grid(build, axes, **self._options(options))

    def _options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        seeds = {} if self.seeds is None else {"seeds": self.seeds}
        return {"seed": self.seed, "progress": self.progress, **seeds, **options}


class Experiment:
    """One figure or numbered item of a paper. A subclass without a ``source`` is a base for others.

    ``Experiment(name=..., title=..., ...)`` is the form of version 0.2.

    Attributes
    ----------
    source
        Where the paper has it.
    name
        A short name, such as ``fig1``; by default that of the class, whose first letter becomes small.
    sizes
        The arguments of ``compute``: one value, or a tuple of three for the sizes smoke, standard and full. A list of three is
        one value. ``seeds``, the number of runs, is not an argument of ``compute`` but an attribute of ``run``.
    weight
        The cost, in CPU seconds at the standard size: the most expensive experiments start first, and the time left is judged
        by it. ``make bench SUITE=reproduce`` measures it.
    items
        The numbered items of the paper that its claims check, where a claim does not say otherwise: ``"Lemma 8; (22)"``.
    ours
        Whether its claims are statements that the paper does not make, where a claim does not say otherwise.
    names
        What the report calls measured numbers, where a claim does not say otherwise.
    """

    source: ClassVar[str]
    name: ClassVar[str]
    sizes: ClassVar[Mapping[str, Any]] = {}
    weight: ClassVar[float] = 1.0
    items: ClassVar[str] = ""
    ours: ClassVar[bool] = False
    names: ClassVar[Mapping[str, str]] = {}
    compute: Callable[..., xr.Dataset]

    def __new__(cls, **_of_the_old_form: Any) -> Experiment:
        if cls is Experiment:
            from gyrostat.experiments.old_form import DeclaredExperiment

            return object.__new__(DeclaredExperiment)
        return object.__new__(cls)

    def __init_subclass__(cls) -> None:
        if "name" not in vars(cls):
            cls.name = cls.__name__[0].lower() + cls.__name__[1:]
        if "source" not in vars(cls):
            return
        if not callable(getattr(cls, "compute", None)):
            raise GyrostatError(f"experiment {cls.__name__} has no method compute(self, run, ...): write it.")
        if not cls._paragraphs()[0]:
            raise GyrostatError(f"experiment {cls.__name__} has no title: write it as the docstring of the class.")
        slugs = [claim.slug for method in cls._claims_by_method().values() for claim in method]
        if len(set(slugs)) < len(slugs):
            twice = next(slug for slug in slugs if slugs.count(slug) > 1)
            raise GyrostatError(f"experiment {cls.__name__} has two claims {twice!r}: give each its own slug.")

    @classmethod
    def _paragraphs(cls) -> tuple[str, str]:
        """The title and the summary."""
        title, _, rest = inspect.cleandoc(vars(cls).get("__doc__") or "").partition("\n\n")
        return " ".join(title.split()), " ".join(rest.split())

    @property
    def title(self) -> str:
        """What is seen, in a line."""
        return self._filled(self._paragraphs()[0])

    @property
    def summary(self) -> str:
        """What was found, in a sentence or two."""
        return self._filled(self._paragraphs()[1])

    @classmethod
    def _claims_by_method(cls) -> dict[str, list[Claim]]:
        """Those of base classes first; a method that a subclass writes again replaces one, and None drops it."""
        methods: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            methods |= {name: x for name, x in vars(base).items() if name in methods or hasattr(x, "claims")}
        return {name: method.claims for name, method in methods.items() if hasattr(method, "claims")}

    @cached_property
    def claims(self) -> list[Claim]:
        """The claims in the order in which they are written."""
        return [self._of_this(claim) for method in self._claims_by_method().values() for claim in method]

    def _of_this(self, claim: Claim) -> Claim:
        """A claim with what its experiment says."""
        ours = self.ours if claim.ours is None else claim.ours
        return replace(
            claim,
            statement=self._filled(claim.statement),
            criterion=self._filled(claim.criterion),
            reason=self._filled(claim.reason),
            measure=partial(claim.measure, self),
            items=(() if ours else listed(self.items)) if claim.items is None else claim.items,
            ours=ours,
            names={**self.names, **claim.names},
        )

    def _filled(self, text: str) -> str:
        """A text that several experiments inherit names their attributes in braces: ``{word} ends near the mean``."""
        return re.sub(r"\{(\w+)\}", lambda match: str(getattr(self, match[1], match[0])), text)

    def settings(self, size: str) -> dict[str, Any]:
        """The settings at a size."""
        i = SIZES.index(errors.choice("size", size, SIZES))
        return {name: x[i] if isinstance(x, tuple) and len(x) == 3 else x for name, x in self.sizes.items()}

    def data(
        self,
        *,
        seed: int,
        progress: Callable[[float, int], None] | None = None,
        seeds: int | None = None,
        **settings: Any,
    ) -> xr.Dataset:
        """The data of a seed."""
        return self.compute(ExperimentRun(seed, seeds, progress), **settings)

    def draw(self, ds: xr.Dataset) -> Figure:
        """What to show. An experiment without a figure of its own shows how near each measured number comes to its limit."""
        from gyrostat.experiments.default_figure import how_near

        return how_near(self.claims, ds)

    def figure(self, ds: xr.Dataset) -> Figure:
        """What ``draw`` shows, with mathematics in its texts, this title if it has none, and a note that counts the seeds."""
        drawn = self.draw(ds)
        seeds = seeds_text(ds)
        counts = re.findall(r"\d+", re.sub(r"\(.*?\)", "", seeds))
        if all(re.search(rf"\b{count} (run|seed)s?\b", drawn.note) for count in counts):
            seeds = ""  # said already
        note = f"{drawn.note} {seeds}".strip()
        return replace(drawn, title=drawn.title or self.title, mathematics=True, note=note)


def experiments_in(*modules: ModuleType) -> list[type[Experiment]]:
    """The experiments that modules define, in the order in which they are written.

    Parameters
    ----------
    modules
        The modules of a paper, in the order of the paper.
    """
    return [
        x
        for module in modules
        for x in vars(module).values()
        if isinstance(x, type) and issubclass(x, Experiment) and x.__module__ == module.__name__ and "source" in vars(x)
    ]


def seeds_text(dataset: xr.Dataset) -> str:
    """How many seeds are behind the data: the sizes of the dimensions ``seed`` and ``seed_...``, or the attribute ``runs``.

    >>> import xarray as xr
    >>> seeds_text(xr.Dataset({"loss": (("seed", "step"), [[1.0, 0.5]] * 3)})), seeds_text(xr.Dataset())
    ('3 seeds.', '')
    """
    sizes = {
        str(dim).removeprefix("seed").strip("_"): n for dim, n in dataset.sizes.items() if str(dim).startswith("seed")
    }
    if not sizes and "runs" in dataset.attrs:
        sizes = {"": int(dataset.attrs["runs"])}
    if len(set(sizes.values())) == 1:
        count = next(iter(sizes.values()))
        return f"{count} seed{'s' if count > 1 else ''}."
    parts = [f"{n} ({name})" if name else str(n) for name, n in sizes.items()]
    return f"Seeds: {', '.join(parts)}." if parts else ""
