"""Transformations of Polars LazyFrames."""
