"""The experiments of xu2024 at smoke size: they run, draw, decide as expected, and every claim can come out otherwise."""

from __future__ import annotations

import pytest

import papers
from gyrostat.papers import experiments

PAPER = "xu2024"
NAMES = list(experiments(PAPER))


@pytest.mark.parametrize("name", NAMES)
def test_verdicts_are_the_expected_ones(name):
    papers.check_verdicts_are_the_expected_ones(PAPER, name)


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_can_come_out_otherwise(name):
    papers.check_every_claim_can_come_out_otherwise(PAPER, name)


@pytest.mark.parametrize("name", NAMES)
def test_figures_show_labelled_finite_data(name):
    papers.check_figures_show_labelled_finite_data(PAPER, name)


@pytest.mark.parametrize("name", NAMES)
def test_declarations_are_complete(name):
    papers.check_declarations_are_complete(PAPER, name)
