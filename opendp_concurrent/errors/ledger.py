"""Errors of ledgers: a charge could not be read or written. Known without the extra ``ledger``."""

from __future__ import annotations

from . import ConcurrentError, public


@public
class LedgerError(ConcurrentError):
    """A ledger could not be read, or a charge could not be written. The mechanism did not run."""


@public
class LedgerMismatchError(LedgerError):
    """A ledger was opened with terms that differ from its own; nothing was charged.

    :ivar name: the argument that differs
    :ivar recorded: its value in the ledger
    :ivar given: its value in this call
    """

    charged = False

    def __init__(self, name: str, recorded: object, given: object) -> None:
        super().__init__(
            f"{name} does not match: the ledger has {recorded}, given was {given}; "
            + (
                "check the spelling; opendp_concurrent.ledger.datasets returns all names"
                if name == "dataset"
                else "use the recorded terms, or create another ledger"
            )
        )
        self.name, self.recorded, self.given = name, recorded, given


@public
class UnregisteredError(LedgerError):
    """A ledger has a value of another package whose class is not registered in this process.

    :ivar tag: tag of the value
    """

    charged = False

    def __init__(self, tag: str, register: str = "opendp_concurrent.ledger.register") -> None:
        super().__init__(
            f"the ledger has a value with the tag {tag!r}, and no class is registered for this tag "
            f"in this process: import the package that defines it, or call {register}, before you "
            "open the ledger"
        )
        self.tag = tag


@public
class LedgerDamagedError(LedgerError):
    """A ledger is inconsistent: it was edited or cut, or it is an older copy."""

    def __init__(
        self,
        what: str,
        advice: str = "the ledger was edited, damaged, or replaced by another copy: it accepts no "
        "charge; restore the newest copy",
    ) -> None:
        super().__init__(f"{what}; {advice}")
