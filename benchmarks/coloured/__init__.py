"""The map of coloured pictures: which method keeps a network from relying on the colour, and where."""
