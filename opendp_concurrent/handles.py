"""Handles: what odometers, filters, compositors and streams return; for annotations."""

from .blocks.queryable import BlockFilterQueryable as BlockFilterQueryable
from .continual.concurrent import StreamQueryable as StreamQueryable
from .continual.mechanism import ContinualQueryable as ContinualQueryable
from .queryables.child import ChildOdometerQueryable as ChildOdometerQueryable
from .queryables.child import ChildQueryable as ChildQueryable
from .queryables.named_queries import Readable as Readable
from .queryables.named_queries import WithParts as WithParts
from .queryables.named_queries import WithSynthetic as WithSynthetic
from .queryables.root import ConcurrentCompositionQueryable as ConcurrentCompositionQueryable
from .queryables.root import ConcurrentFilterQueryable as ConcurrentFilterQueryable
from .queryables.root import ConcurrentOdometerQueryable as ConcurrentOdometerQueryable
from .queryables.stream_handles import OwnStreamQueryable as OwnStreamQueryable
from .releases.queryable import SharedReleaseQueryable as SharedReleaseQueryable

__all__ = [name for name in dir() if not name.startswith("_")]
