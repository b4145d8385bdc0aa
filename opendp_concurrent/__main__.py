"""``python -m opendp_concurrent``: the demonstration, or a command on a ledger."""

from __future__ import annotations

import sys
from importlib import import_module


def main() -> None:
    """Run the demonstration, or a command on a ledger.

    Only the one that runs is imported: a command needs neither ``opendp.prelude`` nor the extras
    of OpenDP, which take most of a second to import, or two with scikit-learn.
    """
    if sys.argv[1:2] == ["ledger"]:
        sys.exit(import_module("opendp_concurrent.command").main(sys.argv[2:]))
    import_module("opendp_concurrent.demo.program").main()


if __name__ == "__main__":
    main()
