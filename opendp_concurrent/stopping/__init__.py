"""Readings of the privacy loss that hold when answers choose the time at which one stops.

Other rooms do not know them. Importing this room tells ``accumulators`` of them.
"""

from .. import accumulators
from .any_time import any_time

accumulators.include(any_time)
