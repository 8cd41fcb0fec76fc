"""A fingerprint changes with whatever a function can reach, and with nothing else."""

from __future__ import annotations

import ast
import cmath
import functools
import importlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

import equinox as eqx
import grimp
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gyrostat
import gyrostat as gs
from gyrostat.experiments import registry
from gyrostat.stores.fingerprint import PAPERS, ROOMS, core_digest, differences, fingerprint

HOME = Path(gyrostat.__file__).parent


def of(value: Any) -> dict[str, str]:
    return fingerprint({"value": value})


# What a function can reach

FACTOR = 2.0


def helper(x):
    return FACTOR * x


def uses_helper(x):
    return helper(x)


def helper_in_a_nested_function(x):
    return [*map(lambda y: helper(y), [x])]


def closed_over(value):
    def run(x):
        return value, x

    return run


def by_default(value):
    def run(x, eta=value):
        return x * eta

    return run


class Rule:
    power = 1

    def __init__(self, weight):
        self.weight = weight

    def apply(self, x):
        return helper(self.weight * x**self.power)


class Layer(eqx.Module):
    weight: jax.Array
    power: int = eqx.field(static=True, default=1)

    def __call__(self, x):
        return self.weight * x**self.power


def cyclic(value):
    items = [value]
    items.append(items)
    return items


def advanced(steps):
    rng = np.random.default_rng(0)
    rng.normal(size=steps)
    return rng


@pytest.mark.parametrize(
    "made",
    [
        closed_over,
        by_default,
        cyclic,
        advanced,
        Rule,
        np.zeros,
        range,
        lambda n: Rule(n).apply,
        lambda n: functools.partial(helper, n),
        lambda n: jax.jit(closed_over(n)),
        lambda n: jax.vmap(closed_over(n)),
        lambda n: jax.vmap(helper, in_axes=n),
        lambda n: jax.grad(by_default(n)),
        lambda n: functools.cache(closed_over(n)),
        lambda n: eqx.filter_jit(closed_over(n)),
        lambda n: closed_over([{"a": {n}}]),
        lambda n: closed_over({"a": 1, "b": n}),
        lambda n: closed_over(dict([("a", 1), ("b", 2)][:: 2 * n - 3])),  # a function may go through it in order
        lambda n: closed_over(np.float32(n)),
        lambda n: closed_over(jax.numpy.arange(n)),
        lambda n: closed_over(jax.random.key(n)),
        lambda n: closed_over(Layer(jax.numpy.ones(2), n)),
        lambda n: closed_over(np.random.default_rng(n)),
        lambda n: closed_over(np.random.default_rng(n).normal),
        lambda n: closed_over([closed_over(n), closed_over(3)]),
        lambda n: closed_over([np.sin, np.cos][n - 1]),
        lambda n: closed_over([math.sin, cmath.sin][n - 1]),
        lambda n: closed_over(types.MappingProxyType({"a": n})),
        lambda n: closed_over(np.array([n, "a"], dtype=object)),
        lambda n: gs.HeteroSGD(0.05 * n),
    ],
)
def test_a_value_counts_wherever_it_is_held(made):
    assert of(made(1)) == of(made(1)) != of(made(2))


@pytest.mark.parametrize(
    "reaching",
    [
        uses_helper,
        helper_in_a_nested_function,
        Rule(1.0).apply,
        jax.jit(uses_helper),
        jax.vmap(uses_helper),
        functools.cache(uses_helper),
        functools.partial(map, uses_helper),
        closed_over([uses_helper]),
        lambda x: uses_helper(x),
    ],
)
def test_a_global_that_is_set_while_the_program_runs_counts(monkeypatch, reaching):
    before = of(reaching)
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert differences(before, of(reaching)) == [f"`FACTOR` of module `{__name__}` differs"]


def test_a_class_that_is_changed_while_the_program_runs_counts(monkeypatch):
    before = of(Rule(1.0))
    Rule(2.0).__reduce_ex__(2)  # which writes into the class
    assert of(Rule(1.0)) == before
    monkeypatch.setattr(Rule, "power", 2)
    assert differences(before, of(Rule(1.0))) == [f"`Rule` of module `{__name__}` differs"]


def typed(source: str) -> dict[str, str]:
    """The fingerprint of a function that is typed into a notebook."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(source, space)
    return of(space["build"])


def test_of_a_notebook_only_what_the_function_reaches_counts():
    build = "def build(x):\n    return RATE * x.mean\n"
    before = typed("RATE = 1\n" + build)
    same = 'mean = 5\n\n\nother = [1]\nRATE = 1\ndef build(x):\n    "Multiply."\n    # why\n    return RATE * x.mean\n'
    assert typed(same) == before
    assert differences(before, typed("RATE = 2\n" + build)) == ["`RATE` of module `__main__` differs"]
    changed = differences(before, typed("RATE = 1\n" + build.replace("*", "+")))
    assert changed == ["`build` of module `__main__` differs"]


def test_what_a_function_of_a_notebook_imports_counts_by_its_files_and_is_not_run(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "held_package").mkdir()
    (tmp_path / "held_package" / "held.py").write_text("N = 1\n")
    (tmp_path / "helper_of_notebook.py").write_text("from held_package import held\nN = held.N\n")
    before = typed("def build(x):\n    from helper_of_notebook import N\n    return N\n")
    (tmp_path / "held_package" / "held.py").write_text("N = 2\n")
    after = typed("def build(x):\n    from helper_of_notebook import N\n    return N\n")
    assert differences(before, after) == ["`N` of module `held_package.held` differs"]
    assert "helper_of_notebook" not in sys.modules


def test_the_main_program_is_the_same_in_a_worker():
    space: dict[str, Any] = {"__name__": "__mp_main__"}
    exec("def build(x):\n    return x\n", space)
    assert of(space["build"]) == typed("def build(x):\n    return x\n")


def test_installed_packages_count_by_their_version_and_the_package_of_the_function_by_its_files(tmp_path, monkeypatch):
    place = tmp_path / "site-packages"
    files = {
        "their_spec": "import gyrostat, their_library\ndef build():\n    return their_library.N\n",
        "their_library": "N = 1\n",
    }
    for name, text in files.items():
        (place / f"{name}-1.0.dist-info").mkdir(parents=True)
        (place / f"{name}-1.0.dist-info" / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        )
        (place / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(place))
    build = importlib.import_module("their_spec").build
    before = of(build)
    assert before["their_library"] == "1.0"
    (place / "their_library.py").write_text("N = 2\n")
    assert of(build) == before
    (place / "their_spec.py").write_text(files["their_spec"].replace("N", "M"))
    assert differences(before, of(build)) == ["`build` of module `their_spec` differs"]


# Two processes

ASSORTED = """
import dataclasses, enum, functools, logging, re, sys, threading
import equinox as eqx, jax, jax.numpy as jnp, numpy as np
from collections import Counter, OrderedDict, defaultdict, namedtuple
from gyrostat.stores.fingerprint import fingerprint
import gyrostat as gs

class Colour(enum.Enum):
    RED = "red"

@dataclasses.dataclass(frozen=True)
class Pair:
    names: frozenset = frozenset({"a", "b", "c"})
    more: list = dataclasses.field(default_factory=list)

class Layer(eqx.Module):
    weight: jax.Array
    @functools.cached_property
    def twice(self):
        return 2 * self.weight
    def __call__(self, x):
        return self.weight * x

Point = namedtuple("Point", "x y")
lock, log, words = threading.Lock(), logging.getLogger("a"), {"one", "two", "three", ("x", 4)}
rng, file, pattern = np.random.default_rng(3), open(__file__), re.compile("a+")
by_name = defaultdict(list, {word: [word] for word in ("p", "q")})

@functools.cache
def kept(x):
    return x in {"alpha", "beta", "gamma"}

@jax.custom_vjp
def f(x):
    return x
f.defvjp(lambda x: (x, None), lambda _, g: (g,))

@functools.singledispatch
def shown(x):
    return str(x)

@jax.jit
def jitted(x):
    return f(x) + 1

mapped, compiled = jax.vmap(jitted), eqx.filter_jit(jitted)

def build(x):
    with lock:
        log.info(file, pattern)
    layer = Layer(jnp.ones(2))
    return [layer(x), mapped(jnp.ones(3)), compiled(x), jax.grad(f)(x), kept(1), shown(1), Pair(), Point(1, 2), Colour.RED,
            words, rng, by_name, gs.HeteroSGD(0.05), Counter("abc"), OrderedDict(a=1), object, jax.random.key(0)]

before = fingerprint({"build": build})
build(1.0)
assert fingerprint({"build": build}) == before, "used"
import json; print(json.dumps(before))
"""


def test_a_fingerprint_is_the_same_in_every_process_and_after_use(tmp_path):
    printed = []
    for number in (1, 2):
        script = tmp_path / f"script{number}.py"
        script.write_text("# a line\n" * number + ASSORTED)
        done = subprocess.run(
            [sys.executable, str(script)],
            env={**os.environ, "PYTHONHASHSEED": str(number)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        printed.append(json.loads(done.stdout))
    assert printed[0] == printed[1]
    assert {"`rng` of module `__main__`", "`lock` of module `__main__`", "equinox", "python"} < printed[0].keys()


# The law: equal fingerprints mean equal values

STYLES = {  # how a function can come by a number N that is not written in it
    "import": ("", "law_c.N"),
    "from": ("from law_c import N", "N"),
    "getattr": ("", "getattr(law_c, 'N')"),
    "later": ("", "later()"),
    "later from": ("", "later_from()"),
    "after another": ("def aaa():\n    return law_c.__doc__", "(aaa(), law_c.N)[1]"),
    "helper": ("from law_b import helped", "helped()"),
    "closure": ("from law_b import closing\nclosed = closing(law_c.N)", "closed()"),
    "partial": ("part = functools.partial(int, law_c.N)", "part()"),
    "cached": ("@functools.cache\ndef cached():\n    return law_c.N", "cached()"),
    "default": ("def default(n=law_c.N):\n    return n", "default()"),
    "class": ("class Held:\n    n = law_c.N\n    def get(self):\n        return self.n", "Held().get()"),
    "object": ("from law_b import Kept\nkept = Kept(law_c.N)", "kept.n"),
    "table": ("table = {'f': lambda: law_c.N}", "table['f']()"),
    "list": ("listed = []\nlisted.append(law_c.N)", "sum(listed)"),
    "package": ("import law_p.inner", "law_p.inner.M"),
    "package itself": ("import law_p.inner", "law_p.SET"),
}
SPEC = """
import functools
import law_c
{top}
def later():
    import law_c as c
    return c.N
def later_from():
    from law_c import N
    return N
def build(x):
    return ({use}) {operator} x
"""
HELPERS = """
import law_c
class Kept:
    def __init__(self, n):
        self.n = n
def helped():
    return law_c.N + {addend}
def closing(n):
    return lambda: n + {addend}
"""
Program = tuple[str, str, int, int, str, int | None, str]


def programs() -> st.SearchStrategy[Program]:
    number = st.integers(1, 2)
    remark = st.sampled_from(["", "# a remark\n", '"""A docstring."""\n\n\n'])
    return st.tuples(
        *(st.sampled_from([*STYLES]), st.sampled_from("+*"), number, number),
        *(st.sampled_from(["", "import json\n"]), st.none() | number, remark),
    )


def run(program: Program, folder: Path) -> tuple[dict[str, str], float]:
    """The fingerprint and the value of a little program that is written to files, imported, and perhaps changed then."""
    style, operator, number, addend, more, set_later, remark = program
    top, use = STYLES[style]
    files = {
        "law_a.py": remark + more + SPEC.format(top=top, use=use, operator=operator),
        "law_b.py": remark + HELPERS.format(addend=addend),
        "law_c.py": f"{remark}N = {number}\n",
        "law_p/__init__.py": f"SET = {number}\n",
        "law_p/inner.py": f"import law_c\nM = law_c.N + {addend}\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    for name in [name for name in sys.modules if name.startswith("law_")]:
        del sys.modules[name]
    importlib.invalidate_caches()
    module = importlib.import_module("law_a")
    if set_later is not None and not style.startswith("later"):  # what only functions import counts by its files alone
        sys.modules["law_c"].N = set_later
    found = of(module.build)
    return found, module.build(3)


def check_law(before: Program, after: Program) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setattr(sys, "dont_write_bytecode", True)
        one, value = run(before, Path(folder))
        two, other_value = run(after, Path(folder))
    assert value == other_value or one != two
    if before[:-1] == after[:-1]:
        assert one == two  # remarks do not count
    assert bool(differences(one, two)) == (one != two)


@given(programs(), st.data())
@settings(max_examples=100, deadline=None)
def test_law_equal_fingerprints_mean_equal_values(before, data):
    changes = data.draw(st.lists(st.integers(0, len(before) - 1), max_size=2), label="what is changed")
    other = data.draw(programs(), label="to")
    check_law(before, tuple(other[i] if i in changes else part for i, part in enumerate(before)))


@pytest.mark.parametrize("style", STYLES)
def test_law_one_change_at_a_time(style):
    before: Program = (style, "+", 1, 1, "", None, "")
    for i, part in enumerate((style, "*", 2, 2, "import json\n", 2, "# a remark\n")):
        check_law(before, (*before[:i], part, *before[i + 1 :]))


# The core of gyrostat, and experiments


def public_homes() -> dict[str, str]:
    """The module of every public name, from the stub of the package: ``gs.run`` is in ``gyrostat.engine.run``."""
    stub = ast.parse((HOME / "__init__.pyi").read_text())
    return {
        alias.asname or alias.name: f"gyrostat.{node.module}" if node.module else f"gyrostat.{alias.name}"
        for node in stub.body
        if isinstance(node, ast.ImportFrom) and node.level == 1
        for alias in node.names
    }


def lazily_used(path: Path) -> set[str]:
    """The modules behind ``gs.name`` in a file that has ``import gyrostat as gs``."""
    names = {
        node.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "gs"
    }
    return {public_homes()[name] for name in names}


def rooms_of_papers() -> set[str]:
    """The rooms with a module that the papers import, directly or through others."""
    graph = grimp.build_graph("gyrostat")
    used = {module for room in PAPERS for module in (room, *graph.find_descendants(room))}
    for path in [*(HOME / "papers").rglob("*.py"), *(HOME / "studies").rglob("*.py")]:
        used |= lazily_used(path)
    for module in list(used):
        used |= graph.find_upstream_modules(module)
    return {module.removeprefix("gyrostat").lstrip(".").split(".")[0] for module in used}


def test_the_core_is_exactly_what_papers_run_through():
    changes_no_number = {
        "figures",
        "typing",
        "what_went",
        "",
    }  # drawing, types, sentences, and the package's public names
    assert rooms_of_papers() - changes_no_number - {"papers", "studies"} == set(ROOMS)
    assert all((HOME / room).exists() or (HOME / f"{room}.py").exists() for room in ROOMS)


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A copy of the package, whose files are then those of the fingerprint."""
    home = tmp_path / "gyrostat"
    shutil.copytree(HOME, home, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(gyrostat, "__file__", str(home / "__init__.py"))
    monkeypatch.setattr(gyrostat.__spec__, "submodule_search_locations", [str(home)])
    core_digest.cache_clear()
    yield home
    core_digest.cache_clear()


CONCERNED = {
    "papers/xu2024/fig5_fig6_thm3_thm6_pooled.py": {
        "xu2024/fig1",
        "xu2024/fig5",
    },  # Figure 1 is drawn from Figure 5's data
    "papers/xu2024/settings.py": {"xu2024/fig1", "xu2024/fig3", "xu2024/fig5"},
    "papers/xu2024/__init__.py": set(),
    "figures/palette.py": set(),
    "sweeps/spec.py": set(),
    "engine/simulate.py": {"xu2024/fig1", "xu2024/fig3", "xu2024/fig5", "studies/fold"},
    "errors.py": {"xu2024/fig1", "xu2024/fig3", "xu2024/fig5", "studies/fold"},
}


@pytest.mark.parametrize("file", CONCERNED)
def test_a_change_concerns_the_experiments_that_can_run_through_it(copied, file):
    def fingerprints():
        core_digest.cache_clear()
        names = sorted(set.union(*CONCERNED.values()))
        return {name: of(registry.experiments(name.split("/")[0])[name.split("/")[1]].compute) for name in names}

    before = fingerprints()
    with (copied / file).open("a") as source:
        source.write("ANOTHER = 1\n")
    after = fingerprints()
    assert {name for name in before if before[name] != after[name]} == CONCERNED[file]


@pytest.mark.parametrize("file", ["sweeps/formulas.py", "sweeps/plan.py", "sweeps/spec.py"])
def test_sweeps_also_depend_on_how_cells_are_made(copied, file):
    table = {
        "num_steps": 5,
        "algorithm": {"kind": "HeteroSGD", "step_size": 0.1},
        "environments": {"kind": "RandomEnvironments", "dimension": 3, "law": {"kind": "TwoPoint"}},
        "measurements": {"kind": "Identity"},
        "axes": {"spread": [1.0]},
        "record": {"final": ["signal"]},
    }
    from gyrostat.sweeps import read_spec

    before = read_spec(table).code
    core_digest.cache_clear()
    with (copied / file).open("a") as source:
        source.write("ANOTHER = 1\n")
    (said,) = differences(before, read_spec(table).code)
    assert said.startswith("gyrostat: ")
