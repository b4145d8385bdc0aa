"""The error of tables that stay in an engine."""

from __future__ import annotations

from opendp.mod import OpenDPException

from . import ConcurrentError, public


@public
class TableError(ConcurrentError, OpenDPException):
    """An engine could not run a statement on a table. Always the same, whatever the data are."""

    def __init__(self) -> None:
        super().__init__(
            "the engine could not answer the statement; why is kept from analysts, as it may tell "
            "of the data, and is in the log of the owner (opendp_concurrent.tables); what it cost "
            "stays charged"
        )
