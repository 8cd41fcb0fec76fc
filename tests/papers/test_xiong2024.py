"""The experiments of xiong2024 at smoke size: they run, draw, decide as expected, and every claim can come out otherwise."""

import paper_checks


class TestXiong2024(paper_checks.Checks):
    paper = "xiong2024"
