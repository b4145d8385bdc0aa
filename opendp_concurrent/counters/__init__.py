"""Counters of a stream, and what is built from them."""
