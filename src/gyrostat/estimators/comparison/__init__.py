"""Methods for data from several environments side by side: peers, how all of them choose, and environments left out in turn."""
