"""The studies at smoke size: they run, draw, decide as expected, and every claim can come out otherwise."""

import paper_checks


class TestStudies(paper_checks.Checks):
    paper = "studies"
