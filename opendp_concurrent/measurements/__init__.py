"""Mechanisms: OpenDP's samplers with tighter certificates."""
