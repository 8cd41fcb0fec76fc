"""Objects from tables: built, shown as Python, changed by paths, and refused with a hint."""

from __future__ import annotations

import pytest

import gyrostat as gs
from checks import refuses
from gyrostat.experiments.objects_from_dicts import LAWS, build, object_table, python_source, setting_at, setting_paths

TABLE = object_table(
    "RandomEnvironments", dimension=5, rank=1, law=object_table("Finite", values=[-1.0, 3.0]), overlap=0.5
)


@pytest.mark.parametrize(
    "table",
    [
        TABLE,
        object_table("Environments.diagonal", dimension=4, values=[2.0, 1.0]),
        object_table("Periodic", phases=[[10, object_table("Constant", step_size=0.1)]]),
        object_table("HeteroSGD", step_size=0.05, order="cyclic"),
    ],
    ids=lambda table: table["kind"],
)
def test_python_source_builds_the_same_object(table):
    assert repr(eval(python_source(table), {"gs": gs})) == repr(build(table, "x"))


def test_defaults_are_settings_too():
    assert setting_at({"law": {"kind": "TwoPoint", "mean": 3.0}}, "law.mean") == 3.0
    assert setting_at({"law": {"kind": "TwoPoint"}}, "law.rank") == 1
    refuses(lambda: setting_at({"algorithm": {"kind": "HeteroSGD"}}, "algorithm.step_size"), "algorithm.step_size")
    assert "law.values" in set(setting_paths(TABLE)) and "law.weights" in set(setting_paths(TABLE))


def test_words_for_laws_name_laws():
    for kind in LAWS.values():
        assert build(object_table(kind, mean=1.0, spread=2.0, rank=1), "law").rank == 1


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"kind": "TwoPiont"}, ("'TwoPiont'", "'TwoPoint'")),
        ({"kind": "TwoPoint", "spraed": 1.0}, ("law", "'spraed'", "'spread'")),
        ({"kind": "Finite"}, ("law.values",)),
        ({"kind": "Environments.diagnal"}, ("'diagnal'", "'diagonal'")),
        ({"kind": "__version__"}, ("makes no object",)),
        ({"kind": "nowhere:build"}, ("cannot be imported", "'nowhere:build'")),
        ({"kind": 3}, ("kind must be a name", "3")),
        ({"kind": "RandomEnvironments", "dimension": 3, "law": {"kind": "Finite"}}, ("law.law.values",)),
    ],
)
def test_bad_tables_are_refused(table, words):
    refuses(lambda: build(table, "law"), *words)
