"""Conversions of losses between privacy measures: one file per theorem, every bound rounded up."""
