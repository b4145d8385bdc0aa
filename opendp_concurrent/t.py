"""Transformations of streams, and of Polars LazyFrames."""

from .continual.transformations import (
    make_bounded_contributions,
    make_stream_clamp,
    make_stream_filter,
    make_stream_map,
    then_bounded_contributions,
    then_stream_clamp,
    then_stream_filter,
    then_stream_map,
)
from .frames.count import make_frame_count, then_frame_count

__all__ = [
    "make_bounded_contributions",
    "make_frame_count",
    "make_stream_clamp",
    "make_stream_filter",
    "make_stream_map",
    "then_bounded_contributions",
    "then_frame_count",
    "then_stream_clamp",
    "then_stream_filter",
    "then_stream_map",
]
