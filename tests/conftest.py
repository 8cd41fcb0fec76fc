"""Shared pieces: fixed problems, a diagnostic that shows parameters, and a spy on measurements."""

from __future__ import annotations

import gc
import os
import signal
import tempfile

from gyrostat.parallel.threads import confine_this_process, single_thread_settings

# As the lab runs what takes seconds: one thread for each of pytest's workers. BLAS reads this when NumPy comes in.
os.environ.update(single_thread_settings(quick=True))
# pytest's workers set a width; what commands print in tests is as wide as without a terminal.
os.environ.pop("COLUMNS", None)
if "PYTEST_XDIST_WORKER" not in os.environ:
    # Compiled programs are kept for this run of the tests alone: its workers and the processes they start share them, and the
    # user's cache is left alone. Many tests build the same program anew.
    programs = tempfile.TemporaryDirectory(prefix="gyrostat-tests-", ignore_cleanup_errors=True)
    os.environ["GYROSTAT_COMPILE_CACHE"] = programs.name

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fuzz_tally
import gyrostat as gs
from gyrostat.experiments import registry
from gyrostat.jax_tools.float64 import double
from gyrostat.measurements import Measurements, dense, dense_data, entries

HASTY = "jax_disable_most_optimizations"
os.environ[HASTY.upper()] = "1"  # for processes that tests start


def pytest_configure():
    """Use one thread, compile hastily, hear Ctrl-C, which tests send to themselves and programs in the background ignore."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # XLA's idle threads look for work in turns: with one for each core, they took a quarter of some experiments' time.
    confine_this_process()
    # Most programs of tests run only briefly: without most optimisations, compiling takes at most two thirds of the time.
    jax.config.update(HASTY, True)


SLOW = set((Path(__file__).parent / "slow_tests.txt").read_text().splitlines())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark what ``slow_tests.txt`` lists; of a test with parameters the first case stays quick."""
    known = set()
    for item in items:
        function, _, case = item.nodeid.partition("[")
        file = function.split("::")[0]
        if f"{file}[{case}" in SLOW or (function in SLOW and (not case or function in known)):
            item.add_marker(pytest.mark.slow)
        known.add(function)


def pytest_collection_finish():
    """Tracing makes millions of short-lived objects: exempt what exists now from garbage collection, and collect less often.

    This saves 4 % of the time of all tests.
    """
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


@contextmanager
def compiled_hastily(is_hasty: bool) -> Iterator[None]:
    """In this block, programs compile without most optimisations, or with those that users get."""
    before = jax.config.read(HASTY)
    jax.config.update(HASTY, is_hasty)
    try:
        yield
    finally:
        jax.config.update(HASTY, before)


@pytest.fixture
def optimised():
    """For tests whose programs run longer than they compile: with the optimisations that users get."""
    with compiled_hastily(False):
        yield


@pytest.fixture
def x64():
    """Double precision for code that is called outside ``run``."""
    with double():
        yield


def orthonormal(seed: int, d: int, r: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((d, r)))[0]


def random_factors(seed: int, n1: int = 5, n2: int = 4, k: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """F and G with independent normal entries."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n1, k)), rng.standard_normal((n2, k))


def random_layers(model: gs.DeepLinear, seed: int, shape: tuple[int, int] = (3, 4)) -> tuple[np.ndarray, ...]:
    """The layers of a network with independent normal entries."""
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal(s) for s in model.shapes(shape))


def given_environments(d: int = 5, law: Any = None, rank: int = 1) -> gs.Environments:
    """Environments that are the same for every seed."""
    law = gs.TwoPoint(mean=1.0, spread=3.0) if law is None else law
    basis = orthonormal(1, d, rank + law.rank)
    return gs.Environments(basis[:, :rank], basis[:, rank:], law)


def rectangular_environments(n1: int = 4, n2: int = 3, law: Any = None, rank: int = 1) -> gs.RectangularEnvironments:
    """The same for rectangular targets."""
    law = gs.TwoPoint(mean=1.0, spread=3.0) if law is None else law
    left, right = orthonormal(1, n1, rank + law.rank), orthonormal(2, n2, rank + law.rank)
    return gs.RectangularEnvironments(left[:, :rank], right[:, :rank], left[:, rank:], right[:, rank:], law)


class Watch:
    """A diagnostic that returns all parameters as one vector, counts its tracings and notes shapes and dtypes."""

    def __init__(self) -> None:
        self.traced = 0
        self.seen: set = set()
        self.diagnostic = gs.diagnostics.Diagnostic("params", self._show, ("entry",))

    def _show(self, snapshot: Any) -> Any:
        self.traced += 1
        self.seen.add(tuple((p.shape, str(p.dtype)) for p in snapshot.params))
        return jnp.concatenate([p.ravel() for p in snapshot.params])


_stash: dict[str, Any] = {}


class Spy(Measurements):
    """Passes every call on to other measurements, and records the arguments and the reading."""

    inner: Measurements
    write: Callable = eqx.field(static=True)

    @property
    def vectorises(self) -> bool:
        return self.inner.vectorises

    @property
    def gives_response_mean(self) -> bool:
        return self.inner.gives_response_mean

    def check(self, environments, space, mixes):
        self.inner.check(environments, space, mixes)

    def init(self, key, environments, space, demand):
        # The key of the run is its name: under vmap the records of several runs arrive mixed.
        name = jax.random.key_data(key)
        return self.inner.init(key, environments, space, demand), name, jnp.zeros((), dtype=jnp.int32)

    def sense(self, state, key, scene, environment):
        extra = {"index": environment.index, "target": scene.environments.target(environment.sigma)}
        return self._record(state, lambda s: self.inner.sense(s, key, scene, environment), scene, extra)

    def mix(self, state, key, scene):
        extra = {"target": scene.environments.mean_target}
        return self._record(state, lambda s: self.inner.mix(s, key, scene), scene, extra)

    def _record(self, state, call, scene, extra):
        inner, name, number = state
        _stash.clear()
        reading, inner = call(inner)
        note = {
            "gradient": reading.gradient,
            "mean": jnp.asarray(reading.response_mean),
            "square": reading.residual_square,
            "product": scene.product,
        }
        # Callbacks run in a thread of single precision: doubles travel as pairs of words.
        words = {
            k: jax.lax.bitcast_convert_type(jnp.asarray(v, dtype=float), jnp.uint32)
            for k, v in {**note, **extra, **_stash}.items()
        }
        jax.debug.callback(self.write, name, number, words)
        return reading, (inner, name, number + 1)


class Notes:
    """The records of a :class:`Spy`, by the name of the run and the number of the call."""

    def __init__(self) -> None:
        self.pages: dict[bytes, dict[int, dict[str, np.ndarray]]] = {}

    def spy(self, measurements: Measurements) -> Spy:
        def write(name, number, note):
            run = self.pages.setdefault(np.asarray(name).tobytes(), {})
            run[int(number)] = {k: np.asarray(v).view(np.float64)[..., 0] for k, v in note.items()}

        return Spy(measurements, write)

    def read(self) -> list[list[dict[str, np.ndarray]]]:
        """The records of every run, in order."""
        jax.effects_barrier()
        return [[pages[i] for i in range(len(pages))] for pages in self.pages.values()]


@pytest.fixture
def notes(monkeypatch):
    """Notes in which ``rows``, ``responses`` and ``weights`` appear if measurements have rows."""
    plain, whole, quadratic = dense_data.rows_reading, dense.DesignRows.reading, gs.RankOne._reading

    def reading(scene, X, y, weights=None):
        _stash.update(rows=X, responses=jnp.asarray(y))
        if weights is not None:
            _stash["weights"] = weights
        return plain(scene, X, y, weights)

    def design_reading(rows, scene, target):
        _stash.update(rows=rows.matrices, responses=rows.matrices @ target + rows.noises)
        return whole(rows, scene, target)

    def rank_one(self, scene, x, y):
        _stash.update(rows=x, responses=y)
        return quadratic(self, scene, x, y)

    plain_entries = entries._reading

    def entry(scene, i, j, y):
        rows, columns = scene.space.shape
        hot = jax.nn.one_hot(i, rows, dtype=float)[:, :, None] * jax.nn.one_hot(j, columns, dtype=float)[:, None, :]
        _stash.update(rows=hot.reshape(len(y), -1), responses=y)
        return plain_entries(scene, i, j, y)

    monkeypatch.setattr(entries, "_reading", entry)
    monkeypatch.setattr(dense, "rows_reading", reading)
    monkeypatch.setattr(dense_data, "rows_reading", reading)
    monkeypatch.setattr(dense.DesignRows, "reading", design_reading)
    monkeypatch.setattr(gs.RankOne, "_reading", rank_one)
    return Notes()


def pytest_generate_tests(metafunc):
    """Tests of a class that names its paper get the names of that paper's experiments."""
    paper = getattr(metafunc.cls, "paper", None)
    if paper is not None and "name" in metafunc.fixturenames:
        metafunc.parametrize("name", list(registry.experiments(paper)))


@pytest.fixture
def fake(monkeypatch, tmp_path):
    """Registers the made-up paper of ``tools/fake2024.py`` and returns the file in which it logs what it computes."""
    monkeypatch.setitem(registry.PAPERS, "fake2024", "fake2024:PAPER")
    log = tmp_path / "log"
    log.touch()
    monkeypatch.setenv("FAKE_LOG", str(log))
    return log


@pytest.fixture
def tally(request):
    """The counts of the fuzz suite that a test belongs to: the last words of the name of its file."""
    name = request.path.stem.removeprefix("test_fuzz_").replace("_", " ")
    return fuzz_tally.TALLIES.setdefault(name, fuzz_tally.Tally(name))


def pytest_terminal_summary(terminalreporter):
    """Print the counts of the fuzz suite after ``make fuzz``."""
    if fuzz_tally.FULL:
        for line in fuzz_tally.table():
            terminalreporter.write_line(line)
