"""Handles: what odometers, filters, compositors and streams return, and their messages."""

from ..composition import BlockFilterQueryable as BlockFilterQueryable
from ..mechanisms import Deviation as Deviation
from ..mechanisms import LinearAnswers as LinearAnswers
from ..mechanisms import NoisySum as NoisySum
from ..mechanisms import Outcome as Outcome
from ..mechanisms import SparseVectorAnswer as SparseVectorAnswer
from ..queryables import ChildOdometerQueryable as ChildOdometerQueryable
from ..queryables import ChildQueryable as ChildQueryable
from ..queryables import ConcurrentCompositionQueryable as ConcurrentCompositionQueryable
from ..queryables import ConcurrentFilterQueryable as ConcurrentFilterQueryable
from ..queryables import ConcurrentOdometerQueryable as ConcurrentOdometerQueryable
from ..queryables import OwnStreamQueryable as OwnStreamQueryable
from ..queryables import Readable as Readable
from ..queryables import Update as Update
from ..queryables import Updates as Updates
from ..queryables import WithParts as WithParts
from ..queryables import WithSynthetic as WithSynthetic
from ..queryables import WrappedOdometerQueryable as WrappedOdometerQueryable
from ..streams import ContinualQueryable as ContinualQueryable
from ..streams import StreamQueryable as StreamQueryable
from .shared_release import SharedReleaseQueryable as SharedReleaseQueryable

__all__ = [name for name in dir() if not name.startswith("_")]
