"""Handles: what odometers, filters, compositors and streams return; for annotations."""

from .blocks.queryable import BlockFilterQueryable
from .continual.concurrent import StreamQueryable
from .continual.mechanism import ContinualQueryable
from .public import names_of
from .queryables.child import ChildOdometerQueryable, ChildQueryable
from .queryables.named_queries import Readable, WithParts, WithSynthetic
from .queryables.prepaid import PrepaidQueryable
from .queryables.root import (
    ConcurrentCompositionQueryable,
    ConcurrentFilterQueryable,
    ConcurrentOdometerQueryable,
)
from .queryables.stream_handles import OwnStreamQueryable
from .releases.queryable import SharedReleaseQueryable

__all__ = [
    "BlockFilterQueryable",
    "ChildOdometerQueryable",
    "ChildQueryable",
    "ConcurrentCompositionQueryable",
    "ConcurrentFilterQueryable",
    "ConcurrentOdometerQueryable",
    "ContinualQueryable",
    "OwnStreamQueryable",
    "PrepaidQueryable",
    "Readable",
    "SharedReleaseQueryable",
    "StreamQueryable",
    "WithParts",
    "WithSynthetic",
]
__getattr__, __dir__ = names_of(__name__, __all__)
