"""Measurements: OpenDP's samplers certified more tightly, and mechanisms made of them."""
