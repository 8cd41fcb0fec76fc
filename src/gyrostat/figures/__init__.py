"""Figures as data, the palette, a matplotlib and a plotly renderer, and the frame of HTML pages."""
