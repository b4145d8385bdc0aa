"""Continual mechanisms: data that arrive while questions are asked."""
