"""Public partitions of the data, and parallel composition over them."""
