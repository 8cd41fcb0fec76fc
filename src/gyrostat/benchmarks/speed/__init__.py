"""Speed benchmarks: the library against straightforward loops, timed in turns on one core."""
