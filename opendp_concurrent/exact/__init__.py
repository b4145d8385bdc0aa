"""Exact sums, outward rounding, brackets of decimals, the normal distribution."""
