"""The known faults of OpenDP's maps: one entry for each issue, and which ones an owner accepts.

The page ``docs/advisories.rst`` has for each entry a program that shows the fault.
"""

from __future__ import annotations

from dataclasses import dataclass

from opendp import mod

from ...arguments.checks import one_of


@dataclass(frozen=True, slots=True)
class Advisory:
    """A fault of OpenDP that has an issue.

    :ivar issue: the number of the issue
    :ivar fault: what is wrong
    :ivar advice: what to do
    :ivar until: the version of OpenDP that mends it, if there is one
    """

    issue: int
    fault: str
    advice: str
    until: tuple[int, ...] | None = None

    @property
    def reference(self) -> str:
        """The issue as it is written on GitHub."""
        return f"opendp#{self.issue}"

    @property
    def stands(self) -> bool:
        """Whether the installed version has the fault, and no owner accepts it."""
        version = tuple(int(part) for part in mod.__version__.split(".")[:2] if part.isdigit())
        return self.issue not in ACCEPTED and (self.until is None or version < self.until)


_NULLS = "has nulls where OpenDP believes it has none, so a count can be released without noise"
_FILL = "end the expression with .fill_null(value), after that step"

KNOWN = {
    one.issue: one
    for one in (
        Advisory(
            2922,
            "a threshold is released at equality, which the δ of the privacy map leaves out",
            "pass a threshold above the sensitivity; the δ is then corrected",
        ),
        Advisory(
            2926,
            "make_metric_bounded halves an ordered distance, where every position can change",
            "begin with dp.symmetric_distance()",
        ),
        Advisory(
            2927,
            "make_resize shuffles only some of its inputs, so ordered distances have no bound",
            "pass MO=SymmetricDistance",
        ),
        Advisory(
            2925,
            "the sums of make_b_ary_tree wrap around, unless its leaves are counts of rows",
            "chain it after make_count_by_categories",
        ),
        Advisory(
            2930,
            "randomized response shows the length of a bit vector",
            "use dp.m.make_randomized_response_bool for each bit",
        ),
        Advisory(
            2935,
            "NaN is read as 0 before noise is added, or fails, and a function of Python may return "
            "NaN although its output_domain has none",
            "chain dp.t.then_impute_constant, return integers, or declare columns with nan=True",
        ),
        Advisory(
            2936,
            "fill_null with NaN, or with a column, leaves NaN where OpenDP believes there is none",
            "pass a number, a text or a bool to fill_null",
        ),
        Advisory(2938, f"a cast {_NULLS}", _FILL),
        Advisory(2939, f"cut {_NULLS}", _FILL),
        Advisory(2940, f"a remainder by a column {_NULLS}", _FILL),
        Advisory(
            2941,
            "a column that is cast to Float32 is believed to have the range of Float64",
            "cast to Float64",
        ),
        Advisory(
            2944,
            "the codes of to_physical depend on the order of the rows",
            "cast the categories to String",
        ),
        Advisory(
            2945,
            "max_length of a margin bounds the rows of a group, of which twice as many can change; "
            "so does max_groups with groups",
            "pass a larger one, or bound what an individual contributes by less, in each group",
        ),
        Advisory(
            2949,
            "a grouping column is redefined after the contributions to its groups were bounded",
            "call with_columns before the truncation, or give the new column another name and "
            "truncate by that one",
        ),
    )
}
ACCEPTED: set[int] = set()


def accept_advisories(*references: str) -> None:
    """Use OpenDP's maps in this process in spite of known faults.

    The owner of the data calls this function, as for ``dp.enable_features``, if a fault does no
    harm in the owner's programs. No message can call it. Losses that were charged before do not
    change.

    Guarantee: none for a measurement that the advisory would refuse or correct. Its bound is as
    true as the map of OpenDP.

    :param references: such as ``"opendp#2935"``; the page *Known faults of OpenDP* lists them
    :raises InvalidTypeError, InvalidValueError: for a reference that is not listed

    :example:

    >>> oc.accept_advisories("opendp#9999")
    Traceback (most recent call last):
    ...
    opendp_concurrent.errors.InvalidValueError: references ('opendp#9999') must be one of ...
    """
    by_name = {one.reference: one.issue for one in KNOWN.values()}
    guard = one_of(*by_name)
    ACCEPTED.update([by_name[guard(references=reference)] for reference in references])
