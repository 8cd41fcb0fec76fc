"""Speed suites: the library against straightforward loops, timed in turns on one core."""
