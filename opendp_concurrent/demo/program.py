"""The demonstration: sessions on survey data, with interactive mechanisms interleaved.

Run ``python -m opendp_concurrent`` (extra ``demo``), or with a table of your own:
``python -m opendp_concurrent --csv FILE --column NAME --bounds LO HI``, and ``--contributions N``
if a person has up to N rows. Of your own table only noisy answers are shown. With ``--stream`` the
data arrive while questions are asked; ``--picture FILE`` draws the answers (extra ``plot``).
``opendp-concurrent ledger show|verify|plot PATH_OR_URL`` reads a ledger, ``backup`` and ``restore``
copy one (extra ``ledger``).
"""

from __future__ import annotations

import argparse
import os

import opendp.prelude as dp

from . import data, launches, mechanisms, stream

MOST_CONTRIBUTIONS = 10**6


def main() -> None:
    """Run the demonstration."""
    parser = argparse.ArgumentParser(prog="python -m opendp_concurrent", description=__doc__)
    parser.add_argument("--csv", help="a CSV file with a header, or a Parquet file")
    parser.add_argument(
        "--column", help="a column of numbers; missing ones count as the middle of the bounds"
    )
    parser.add_argument("--bounds", nargs=2, type=float, metavar=("LO", "HI"))
    parser.add_argument(
        "--contributions", type=int, metavar="N", help="how many rows a person has at most; 1"
    )
    parser.add_argument("--stream", action="store_true", help="data arrive while one asks")
    parser.add_argument("--picture", help="with --stream: a file to draw to, such as stream.svg")
    arguments = parser.parse_args()
    given = [arguments.csv, arguments.column, arguments.bounds]
    if any(given) and not all(given):
        parser.error("--csv, --column and --bounds go together")
    contributions = 1 if arguments.contributions is None else arguments.contributions
    if arguments.contributions is not None and not all(given):
        parser.error("--contributions goes with --csv; in the survey a person is one row")
    if not 1 <= contributions <= MOST_CONTRIBUTIONS:
        parser.error(f"--contributions ({contributions}) must be from 1 to {MOST_CONTRIBUTIONS}")
    os.environ["RUST_BACKTRACE"] = "0"  # OpenDP turns it on; each of its errors then costs 50 ms
    dp.enable_features("contrib", "honest-but-curious")
    if arguments.picture and not arguments.stream:
        parser.error("--picture goes with --stream")
    if arguments.stream:
        stream.show(*data.arrivals(), arguments.picture)
        return
    if all(given):
        launches.show_own(*data.table(*given), contributions)
        return
    launches.show(*data.ages())
    mechanisms.show(*data.cells())
