"""Linear queries on histograms: plans, projection and multiplicative weights."""
