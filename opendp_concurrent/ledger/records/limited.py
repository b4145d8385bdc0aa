"""What the record of a charge contains if the launch was below limits.

Such a charge has, in place of its d_mid, the d_mid, the number of the innermost limit, and what the
launch costs each limit. Limits have numbers from 1, in the order of their first charges. The first
charge of a limit contains its label and its terms. So one row has the charges of all accounts, and
the hash of the row covers them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...arguments.written import written
from ...types import Loss


@written("limit", "above", "label", "terms")
class Opened(NamedTuple):
    """A limit, in its first charge.

    :ivar above: number of the limit that it is below; 0 if it is below none
    :ivar label: its label
    :ivar terms: its terms, as the text of terms
    """

    above: int
    label: str
    terms: str


@written("limited", "d_mid", "limit", "d_mids", "opened")
class LimitedCharge(NamedTuple):
    """The charge of a launch below limits.

    :ivar d_mid: privacy loss of the launch at the d_in of the budget
    :ivar limit: number of the innermost limit
    :ivar d_mids: privacy loss at the d_in of each limit, from the outermost one to the innermost
    :ivar opened: limits whose first charge this is, from the outermost one to the innermost
    """

    d_mid: Loss
    limit: int
    d_mids: tuple[Any, ...]
    opened: tuple[Opened, ...]
