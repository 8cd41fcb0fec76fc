"""The experiments of wang2023 at smoke size: they run, draw, decide as expected, and every claim can come out otherwise."""

import paper_checks


class TestWang2023(paper_checks.Checks):
    paper = "wang2023"
