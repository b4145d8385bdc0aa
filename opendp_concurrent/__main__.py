"""``python -m opendp_concurrent``: the demonstration, a command on a ledger, or a script."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from runpy import run_path
from typing import Any


def main() -> None:
    """Run the demonstration, a command on a ledger, or a script that is written for OpenDP.

    ``run script.py`` runs a script as ``python script.py`` does, within :func:`.swapped_in`.

    Only the one that runs is imported: a command needs neither ``opendp.prelude`` nor the extras
    of OpenDP, which take most of a second to import, or two with scikit-learn.
    """
    if sys.argv[1:2] == ["ledger"]:
        try:
            command = import_module("opendp_concurrent.ledger.command")
        except ImportError as error:  # it names the extra
            sys.exit(str(error))
        sys.exit(command.main(sys.argv[2:], _plot))
    if sys.argv[1:2] == ["run"]:
        _run(sys.argv[2:])
    else:
        import_module("opendp_concurrent.demo.program").main()


def _run(arguments: list[str]) -> None:
    if not arguments or not Path(arguments[0]).is_file():
        sys.exit("run needs the path of a script: python -m opendp_concurrent run script.py")
    sys.argv = arguments
    sys.path[0] = str(Path(arguments[0]).resolve().parent)
    with import_module("opendp_concurrent.swapped").swapped_in():
        run_path(arguments[0], run_name="__main__")


def _plot(ledger: Any, **how: Any) -> Any:
    return import_module("opendp_concurrent.plot").plot_ledger(ledger, **how)


if __name__ == "__main__":
    main()
