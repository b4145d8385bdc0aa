"""The error of contexts."""

from __future__ import annotations

from . import RefusalError, public


@public
class SharesUsedError(RefusalError, ValueError):
    """A context was split into shares, and all of them are used."""

    charged = False

    def __init__(self) -> None:
        super().__init__(
            "the privacy loss of the context is exhausted: all shares of it are used; split it "
            "over more queries, or leave the split out"
        )
