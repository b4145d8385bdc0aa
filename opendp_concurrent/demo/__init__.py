"""The demonstration: one session on a column, and what the same budget buys here and elsewhere."""
