"""The papers: declarations of settings, figures and claims, one package per paper, each with its ``PAPER``."""
