"""Plans as statements of an engine."""
