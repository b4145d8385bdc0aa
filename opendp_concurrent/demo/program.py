"""The demonstration runs a session here and with OpenDP alone, and compares what a budget buys.

``python -m opendp_concurrent`` (extra ``demo``) reads a published survey. To read a table of your
own, add ``--csv FILE`` or ``--parquet FILE``, ``--column NAME``, ``--bounds LO HI`` and, if a
person has up to K rows, ``--contributions K``. Only noisy answers about your table are printed.
``opendp-concurrent ledger show|verify|plot PATH_OR_URL`` reads a ledger (extra ``ledger``).
"""

from __future__ import annotations

import argparse
import os

import opendp.prelude as dp

from . import data, gains, session

MOST_CONTRIBUTIONS = 10**6


def main() -> None:
    """Run the demonstration."""
    parser = argparse.ArgumentParser(prog="python -m opendp_concurrent", description=__doc__)
    parser.add_argument("--csv", "--parquet", dest="file", help="a table; CSV needs a header")
    parser.add_argument("--column", help="a column of numbers; cells may be missing")
    parser.add_argument(
        "--bounds", nargs=2, type=float, metavar=("LO", "HI"), help="public; values are clamped"
    )
    parser.add_argument(
        "--contributions", type=int, metavar="K", help="most rows that one person has (default 1)"
    )
    arguments = parser.parse_args()
    given = [arguments.file, arguments.column, arguments.bounds]
    if any(given) and not all(given):
        parser.error("--csv (or --parquet), --column and --bounds go together")
    if arguments.contributions is not None and not all(given):
        parser.error("--contributions goes with --csv; in the survey a person is one row")
    contributions = 1 if arguments.contributions is None else arguments.contributions
    if not 1 <= contributions <= MOST_CONTRIBUTIONS:
        parser.error(f"--contributions ({contributions}) must be from 1 to {MOST_CONTRIBUTIONS}")
    os.environ["RUST_BACKTRACE"] = "0"  # OpenDP turns it on; each of its errors then costs 50 ms
    dp.enable_features("contrib", "honest-but-curious")
    if not all(given):
        ages = data.ages()
        session.show_published("fair survey, age", ages, (15.0, 50.0))
        gains.show(len(ages))
        return
    low, high = arguments.bounds
    if not -data.LARGEST_BOUND <= low < high <= data.LARGEST_BOUND:
        parser.error(f"--bounds ({low} {high}) must increase, within {data.LARGEST_BOUND:g} of 0")
    values = data.column(arguments.file, arguments.column)
    session.show_own(f"{arguments.file}, {arguments.column}", values, (low, high), contributions)
