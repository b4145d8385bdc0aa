"""``python -m opendp_concurrent``: the demonstration, or a command on a ledger."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


def main() -> None:
    """Run the demonstration, or a command on a ledger.

    Only the one that runs is imported: a command needs neither ``opendp.prelude`` nor the extras
    of OpenDP, which take most of a second to import, or two with scikit-learn.
    """
    if sys.argv[1:2] == ["ledger"]:
        try:
            command = import_module("opendp_concurrent.ledger.command")
        except ImportError as error:  # it names the extra
            sys.exit(str(error))
        sys.exit(command.main(sys.argv[2:], _plot))
    import_module("opendp_concurrent.demo.program").main()


def _plot(ledger: Any) -> Any:
    return import_module("opendp_concurrent.plot").plot_ledger(ledger)


if __name__ == "__main__":
    main()
