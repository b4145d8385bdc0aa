"""Factorisations of prefix sums, for counters with Gaussian noise."""
