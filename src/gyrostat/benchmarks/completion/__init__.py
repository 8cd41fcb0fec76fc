"""The comparison behind ``gyrostat bench completion``: tables with known missing cells, peers, and the page made of them."""
