"""Block filters: one budget for each block of the data, and launches that name their blocks."""
