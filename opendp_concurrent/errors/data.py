"""Errors of data and of what was released from them, when they are used."""

from __future__ import annotations

from opendp.mod import OpenDPException

from . import ConcurrentError, RefusalError, public


@public
class ForkedError(RefusalError):
    """The process was forked; its queryables can be used in the parent process only."""

    def __init__(self) -> None:
        super().__init__(
            "this process was forked from the process that holds the data; a copied "
            "queryable would repeat its noise and keep an account of its own; query it in "
            "the original process, or launch a mechanism in this one"
        )


@public
class DataSourceError(RefusalError):
    """A file that the data are scanned from is missing. This is seen before the charge."""

    charged = False

    def __init__(self) -> None:
        super().__init__(
            "a file that the LazyFrame is scanned from was not found; nothing was charged; put the "
            "file back, or open the data where the files are"
        )


@public
class CollectedError(RefusalError):
    """A released frame was collected before. Its plan would draw fresh noise without a charge."""

    def __init__(self) -> None:
        super().__init__(
            "the released frame is exhausted, because it was collected before; keep the DataFrame "
            "that collect() returned, or release the query again, which is charged again"
        )


@public
class TooFewRowsError(ConcurrentError, ValueError):
    """Noisy counts are too small to find bounds of a column. This is an answer, and is charged."""

    charged = True

    def __init__(self, threshold: float, alpha: float) -> None:
        super().__init__(
            f"too few rows to tell bounds: no noisy count is above {threshold}, which a count "
            f"of no rows is with probability at most {alpha}; what it cost stays charged; pass "
            "bounds that are public, or query with a larger privacy loss or alpha"
        )
        self.threshold, self.alpha = threshold, alpha


@public
class TableError(ConcurrentError, OpenDPException):
    """An engine could not run a statement on a table. Always the same, whatever the data are."""

    def __init__(self) -> None:
        super().__init__(
            "the engine could not answer the statement; why is kept from analysts, as it may tell "
            "of the data, and is in the log of the owner (opendp_concurrent.tables); what it cost "
            "stays charged"
        )
