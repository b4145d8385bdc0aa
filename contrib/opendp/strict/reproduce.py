"""Whether a plan answers depends on one row, if a key has a strict conversion.

OpenDP makes conversions in rows lenient, and refuses them where rows are sorted: a value that
cannot be converted would raise an error that tells of this value. In the keys of ``group_by``, and
in the identifier of the privacy unit, it leaves ``cast``, ``strptime``, ``to_date`` and
``replace_strict`` strict. An error is an answer that no privacy map accounts for. What to do: in
``make_stable_lazyframe`` and ``make_private_lazyframe``, treat keys and identifiers as rows.

The same happens in rows, with ``strict=False``, where ``to_datetime`` has a time zone: Polars
raises an error at a local time that a change of clocks skips. Refuse time zones other than UTC.
"""

import sys

import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib")
EPSILON = 0.01


def answers(zips):
    """Return whether the release answers. The data differ in one row."""
    context = dp.Context.compositor(
        data=pl.LazyFrame({"zip": zips}),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=EPSILON),
        split_evenly_over=1,
    )
    counts = (
        context.query()
        .group_by(pl.col("zip").cast(pl.Int32))
        .agg(dp.len(scale=1 / EPSILON, signed=True))
    )
    keys = pl.LazyFrame({"zip": [1, 2]}, schema={"zip": pl.Int32})
    try:
        counts.with_keys(keys).release().collect()
    except dp.OpenDPException:
        return False
    return True


without, with_it = ([answers(zips) for _ in range(10)] for zips in (["1", "2"], ["1", "2", "x"]))
if without != with_it:
    sys.exit(
        f"at epsilon = {EPSILON}, {sum(without)} of 10 releases answer without a malformed row, "
        f"and {sum(with_it)} of 10 with it"
    )
