"""Private selection: the best of a random number of runs of one mechanism."""
