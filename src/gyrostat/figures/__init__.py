"""Figures as data, one palette, and a matplotlib and a plotly renderer."""
