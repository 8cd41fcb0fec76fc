"""The experiments of xu2024 at smoke size: they run, draw, decide as expected, and every claim can come out otherwise."""

import papers


class TestXu2024(papers.Checks):
    paper = "xu2024"
