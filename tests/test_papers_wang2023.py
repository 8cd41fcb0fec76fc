"""The experiments of wang2023 at smoke size: they run, draw, decide as expected, and every claim can come out otherwise."""

import papers


class TestWang2023(papers.Checks):
    paper = "wang2023"
