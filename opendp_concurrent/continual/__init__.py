"""Continual mechanisms: queries on data that arrive over time."""
