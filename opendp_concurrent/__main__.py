"""The demonstration: sessions on survey data, with interactive mechanisms interleaved.

Run ``python -m opendp_concurrent`` (extra ``demo``), or with a table of your own:
``python -m opendp_concurrent --csv FILE --column NAME --bounds LO HI``. With ``--stream`` the data
arrive while questions are asked; ``--picture FILE`` draws the answers (extra ``plot``).
``opendp-concurrent ledger show|verify|plot PATH_OR_URL`` reads a ledger (extra ``ledger``).
"""

from __future__ import annotations

import argparse
import os
import sys

import opendp.prelude as dp

from . import command
from .demo import data, launches, mechanisms, stream


def main() -> None:
    """Run the demonstration, or a command on a ledger."""
    if sys.argv[1:2] == ["ledger"]:
        sys.exit(command.main(sys.argv[2:]))
    parser = argparse.ArgumentParser(prog="python -m opendp_concurrent", description=__doc__)
    parser.add_argument("--csv", help="a CSV file with a header")
    parser.add_argument("--column", help="a column of numbers")
    parser.add_argument("--bounds", nargs=2, type=float, metavar=("LO", "HI"))
    parser.add_argument("--stream", action="store_true", help="data arrive while one asks")
    parser.add_argument("--picture", help="with --stream: a file to draw to, such as stream.svg")
    arguments = parser.parse_args()
    given = [arguments.csv, arguments.column, arguments.bounds]
    if any(given) and not all(given):
        parser.error("--csv, --column and --bounds go together")
    os.environ["RUST_BACKTRACE"] = "0"  # OpenDP turns it on; each of its errors then costs 50 ms
    dp.enable_features("contrib", "honest-but-curious")
    if arguments.picture and not arguments.stream:
        parser.error("--picture goes with --stream")
    if arguments.stream:
        stream.show(*data.arrivals(), arguments.picture)
        return
    if all(given):
        launches.show(*data.table(*given))
        return
    launches.show(*data.ages())
    mechanisms.show(*data.cells())


if __name__ == "__main__":
    main()
