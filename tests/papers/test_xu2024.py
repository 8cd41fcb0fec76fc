"""The experiments of xu2024 at smoke size: they run, draw, decide as expected, and every claim can come out otherwise."""

import paper_checks


class TestXu2024(paper_checks.Checks):
    paper = "xu2024"
