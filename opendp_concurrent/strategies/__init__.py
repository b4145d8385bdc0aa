"""Strategies of the matrix mechanism: which combinations of counts to add noise to."""
