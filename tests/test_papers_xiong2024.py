"""The experiments of xiong2024 at smoke size: they run, draw, decide as expected, and every claim can come out otherwise."""

import papers


class TestXiong2024(papers.Checks):
    paper = "xiong2024"
