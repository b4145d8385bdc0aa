"""Filters against all analysts who launch finite mechanisms: the largest loss, computed exactly."""
