"""A resumed sweep equals a fresh one, or it is refused with the name of what changed."""

from __future__ import annotations

import importlib
import sys
from functools import partial

import numpy as np
import pytest

import gyrostat as gs
from checks import refuses

SPEC = """
import gyrostat as gs
import settings_of_spec
from helper_of_spec import spread

def build(overlap):
    from later_of_spec import SCALE
    environments = gs.RandomEnvironments(3, law=gs.TwoPoint(spread=spread()), overlap=overlap)
    return gs.HeteroSGD(settings_of_spec.eta, init_scale=SCALE), gs.Problem(environments, gs.Identity())
"""
FILES = {
    "code_of_spec.py": SPEC,
    "settings_of_spec.py": "eta = 0.05\n",
    "helper_of_spec.py": "from law_of_spec import SPREAD\n\ndef spread():\n    return SPREAD\n",
    "law_of_spec.py": "SPREAD = 6.0\n",
    "later_of_spec.py": "SCALE = 0.05\n",
}
TABLE = {
    "num_steps": 10,
    "seeds": 2,
    "experiment": {"kind": "code_of_spec:build", "overlap": 0.0},
    "axes": {"overlap": [0.0, 0.1]},
    "record": {"final": ["signal"]},
}


class Code:
    """The files of a spec, which can be edited and imported again as in a new process."""

    def __init__(self, folder):
        self.folder = folder
        for name, text in FILES.items():
            (folder / name).write_text(text)
        self.forget()

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_text()
        assert old in text
        (self.folder / name).write_text(text.replace(old, new))
        self.forget()

    def forget(self) -> None:
        for name in FILES:
            sys.modules.pop(name.removesuffix(".py"), None)
        for compiled in self.folder.rglob("*.pyc"):
            compiled.unlink()
        importlib.invalidate_caches()


@pytest.fixture
def code(tmp_path, monkeypatch):
    folder = tmp_path / "code"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    made = Code(folder)
    yield made
    made.forget()


def swept(out, **options):
    return gs.sweep(TABLE, out=out, jobs=0, **options)


@pytest.mark.parametrize(
    ("file", "old", "new", "named"),
    [
        ("settings_of_spec.py", "0.05", "0.01", "`eta` of module `settings_of_spec`"),
        ("code_of_spec.py", "TwoPoint", "Uniform", "`build` of module `code_of_spec`"),
        ("helper_of_spec.py", "return SPREAD", "return SPREAD + 1", "`spread` of module `helper_of_spec`"),
        ("law_of_spec.py", "6.0", "7.0", "`SPREAD` of module `law_of_spec`"),
        ("later_of_spec.py", "0.05", "0.01", "`SCALE` of module `later_of_spec`"),
    ],
)
def test_a_sweep_of_edited_code_is_refused_with_the_name_of_what_changed(code, tmp_path, file, old, new, named):
    before = swept(tmp_path / "out")
    code.edit(file, "\n", "  # a remark\n")
    assert swept(tmp_path / "out").identical(before)
    code.edit(file, old, new)
    refuses(lambda: swept(tmp_path / "out"), named, "--fresh")
    assert not swept(tmp_path / "out", fresh=True).signal.equals(before.signal)


def test_a_value_that_is_set_while_the_program_runs_counts_here_and_in_workers(code, tmp_path):
    spec = gs.sweeps.read_spec(TABLE)
    before = gs.sweep(spec, out=tmp_path / "out", jobs=0)
    sys.modules["settings_of_spec"].eta = 0.01
    named = "`eta` of module `settings_of_spec` differs"
    refuses(
        lambda: gs.sweep(spec, out=tmp_path / "out", jobs=0), named
    )  # a spec that was kept, with its old fingerprint
    assert not swept(tmp_path / "here").signal.equals(before.signal)
    # A worker imports the file as it is.
    with pytest.raises(gs.GyrostatError, match=f"this worker has other code than the sweep .{named}"):
        gs.sweep({**TABLE, "axes": {"overlap": [0.0]}}, out=tmp_path / "workers", jobs=1)


def made(eta):
    def build(size, limit=0.0):
        step = eta * (1.5 if isinstance(size, int) else 1.0) * (2.0 if limit > size else 1.0)
        return gs.HeteroSGD(step, init_scale=0.05), gs.Problem(
            gs.RandomEnvironments(3, law=gs.TwoPoint()), gs.Identity()
        )

    return build


def experiment(eta=0.05, sizes=(1.0,), wrapped=lambda build: build, **settings):
    table = {key: TABLE[key] for key in ("num_steps", "seeds", "record")}
    return {**table, "experiment": {"kind": wrapped(made(eta)), **settings}, "axes": {"size": list(sizes)}}


def of_functions(*builds):
    return {**experiment(size=1.0), "axes": {"experiment.kind": list(builds)}}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (experiment(0.05), experiment(0.01), "closure value `eta` of `made` of module"),
        (experiment(sizes=[1.0]), experiment(sizes=[1]), "axes.size: 1 values [1.0] -> 1 values [1]"),
        (experiment(limit=float("-inf")), experiment(limit=float("inf")), "experiment.limit: '-inf' -> 'inf'"),
        (experiment(limit=np.array(0.5)), experiment(limit=np.array(2.0)), "experiment.limit: 0.5 -> 2.0"),
        (
            experiment(wrapped=lambda build: partial(build, limit=0.5)),
            experiment(wrapped=lambda build: partial(build, limit=2.0)),
            "setting `experiment.kind = functools:partial` differs",
        ),
        (of_functions(made(0.05)), of_functions(made(0.01)), "closure value `eta` of `made` of module"),
    ],
    ids=["closure", "whole number", "infinity", "array", "partial function", "function on an axis"],
)
def test_a_resumed_sweep_of_another_spec_is_refused(tmp_path, before, after, words):
    first = gs.sweep(before, out=tmp_path / "out", jobs=0)
    assert gs.sweep(before, out=tmp_path / "out", jobs=0).identical(first)
    refuses(lambda: gs.sweep(after, out=tmp_path / "out", jobs=0), words)
    assert not np.array_equal(gs.sweep(after, out=tmp_path / "fresh", jobs=0).signal, first.signal)


def slow(size):
    return made(0.01)(size)


def fast(size):
    return made(0.05)(size)


def test_functions_on_an_axis_can_be_added(tmp_path):
    first = gs.sweep(of_functions(slow), out=tmp_path / "out", jobs=0)
    both = gs.sweep(of_functions(fast, slow), out=tmp_path / "out", jobs=0, extend=True)
    assert np.array_equal(both.signal[:1], first.signal) and both.sizes["experiment_kind"] == 2
    assert gs.sweep(of_functions(slow, fast), out=tmp_path / "out", jobs=0).identical(both)
