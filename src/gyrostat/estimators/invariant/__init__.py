"""Regression on what holds in every environment, and the diagnosis of how environments differ."""
