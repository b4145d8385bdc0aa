"""Transformations of streams."""

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

__all__ = [
    "make_bounded_contributions",
    "make_stream_clamp",
    "make_stream_filter",
    "make_stream_map",
    "then_bounded_contributions",
    "then_stream_clamp",
    "then_stream_filter",
    "then_stream_map",
]
