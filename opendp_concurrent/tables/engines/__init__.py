"""Engines that run statements: each maps its own errors to one, and its answers to integers."""
