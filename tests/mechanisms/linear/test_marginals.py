"""One-way marginals: exact sums, the attained sensitivity, forms of data, the talk's example."""

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
import scipy.sparse as sparse
from hypothesis import given
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError, UnsupportedMeasureError
from opendp_concurrent.mechanisms import linear_answers as noise_of
from opendp_concurrent.mechanisms.marginals import _columns

from ...build import PURE, RENYI, ZCDP

ROWS = dp.user_domain("rows", lambda data: True), dp.symmetric_distance()
CHANGED = ROWS[0], dp.change_one_distance()
GDP = oc.gaussian_tradeoff()
QUIET = {PURE: 1e12, ZCDP: 1e20, GDP: 1e12}  # losses at which noise is nothing


def quiet(data, columns=3, *args, measure=PURE, space=ROWS, **more):
    """The sums without noise to speak of."""
    made = oc.m.make_marginals(*space, measure, 1, QUIET[measure], columns, *args, **more)
    return made(data)


TABLE = [[1, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 1]]
FORMS = {
    "list": TABLE,
    "bools": np.array(TABLE, dtype=bool),
    "integers": np.array(TABLE),
    "unsigned": np.array(TABLE, dtype=np.uint64),
    "floats": np.array(TABLE, dtype=np.float32),
    "objects": np.array(TABLE, dtype=object),
    "masked": np.ma.array(TABLE, mask=np.zeros((4, 3))),
    "csr": sparse.csr_array(TABLE),
    "csc": sparse.csc_array(TABLE),
    "coo": sparse.coo_array(np.array(TABLE, dtype=np.int8)),
    "matrix": sparse.csr_matrix(np.array(TABLE, dtype=bool)),
    "rows of arrays": [np.array(row) for row in TABLE],
    "none": [],
    "no rows": np.zeros((0, 3)),
    "no stored rows": sparse.csr_array((0, 3)),
}


@pytest.mark.parametrize("measure", QUIET, ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_sums_and_pairs_of_each_form_of_data(form, measure):
    found = quiet(FORMS[form], measure=measure, pairs=[(0, 1), (2, 0)])
    assert found == pytest.approx([0] * 5 if "no" in form else [3, 2, 3, 2, 2], abs=1e-5)
    assert isinstance(found, np.ndarray)
    assert found.dtype == (np.float64 if measure == GDP else np.int64)


WILD = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(), st.booleans(), st.none(), st.text("1a", max_size=2)
)


def by_hand(row, bounds, step):
    """What one row adds, in steps."""
    found = []
    for value, (low, high) in zip(row, bounds, strict=True):
        number = np.float64(value) if isinstance(value, int | float) else np.float64("nan")
        number = 0.0 if np.isnan(number) else float(number)
        steps = round(number / step) if math.isfinite(number / step) else number
        found.append(int(min(max(steps, round(low / step)), round(high / step))))
    return found


@given(
    st.lists(st.lists(st.floats(width=64), min_size=2, max_size=2), max_size=6),
    st.sampled_from([1.0, 0.5, 3.0]),
)
def test_each_value_is_clamped_and_rounded_alone(rows, step):
    bounds = [(-3.0, 6.0), (6.0, 12.0)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        columns = _columns(2, bounds, (), step)
        found = columns.sums(rows)
        arrays = columns.sums(np.array(rows).reshape(-1, 2))
        stored = columns.sums(sparse.csr_array(np.array(rows).reshape(-1, 2)))
    parts = [[0, 0], *(by_hand(row, bounds, step) for row in rows)]
    assert found == arrays == stored == [sum(part) for part in zip(*parts, strict=True)]


@given(st.lists(st.one_of(WILD, st.lists(WILD, max_size=4)), max_size=5), st.integers(0, 4))
def test_a_row_adds_the_same_whatever_the_others_are(rows, at):
    """Also where it is no row: then each of its values is a zero."""
    columns = _columns(2, (-1, 2), (), 1.0)
    alone = np.array([columns.sums([row]) for row in rows]).reshape(-1, 2).sum(axis=0)
    assert columns.sums(rows) == alone.tolist()
    rest = rows[:at] + rows[at + 1 :]
    moved = np.subtract(columns.sums(rows), columns.sums(rest))
    assert np.abs(moved).max() <= 2


def test_values_that_are_stored_twice_are_one_value():
    twice = sparse.coo_array(([1, 1, 1], ([0, 0, 1], [0, 0, 2])), shape=(2, 3))
    assert quiet(twice).tolist() == [1, 0, 1]
    made = sparse.csr_array(([1, 1], [0, 0], [0, 2]), shape=(1, 3))  # not canonical
    assert quiet(made).tolist() == [1, 0, 0]
    assert made.nnz == 2  # and left as it was


def test_sums_that_no_double_holds_are_exact():
    large = 2**31 - 1
    table = np.full((2**15, 1), 2**62, dtype=np.int64)
    table[0] = 1
    assert _columns(1, (0, large), (), 1.0).sums(table) == [(2**15 - 1) * large + 1]


def attained(columns, changed):
    """The largest norms over all pairs of rows at the ends of the bounds, by enumeration."""
    ends = [sorted({int(a), int(b), 0}) for a, b in zip(columns.low, columns.high, strict=True)]
    rows = [columns.sums([row]) for row in itertools.product(*ends)]
    none = [[0] * len(rows[0])]
    moves = [np.subtract(a, b) for a in rows for b in (rows if changed else none)]
    return max(abs(m).sum() for m in moves), max((m**2).sum() for m in moves)


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize(
    ("bounds", "pairs"),
    [((0, 1), ()), ((0, 1), [(0, 1), (1, 2), (0, 2)]), ([(-3, 2), (0, 4), (5, 6)], ())],
)
def test_the_sensitivity_is_attained(bounds, pairs, changed):
    columns = _columns(3, bounds, pairs, 1.0)
    assert columns.norms(changed) == attained(columns, changed)


@pytest.mark.parametrize("space", [ROWS, CHANGED], ids=["added", "changed"])
@pytest.mark.parametrize("d_in", [1, 2, 3])
def test_the_map_is_the_formula_and_the_budget_is_used(space, d_in):
    bounds, d = [(-3, 2), (0, 4)] * 50, 100
    sizes = [5, 4] * 50 if space is CHANGED else [3, 4] * 50
    pure, zcdp = (oc.m.make_marginals(*space, one, d_in, 0.5, d, bounds) for one in (PURE, ZCDP))
    for other in (1, 2, 3):
        epsilon = Fraction(sum(sizes) * other) / Fraction(scale_of(pure))
        rho = Fraction(sum(s * s for s in sizes) * other**2) / (2 * Fraction(scale_of(zcdp)) ** 2)
        for made, exact in ((pure, epsilon), (zcdp, rho)):
            assert exact <= Fraction(made.map(other)) <= exact * (1 + Fraction(1, 2**45))
    for made in (pure, zcdp):
        assert 0.5 * (1 - 1e-9) <= made.map(d_in) <= 0.5


def scale_of(made):
    return float(repr(made).rpartition("scale=")[2].rstrip(")"))


def test_the_scale_is_raised_until_the_map_fits(monkeypatch):
    exact = noise_of.scale_for
    monkeypatch.setattr(noise_of, "scale_for", lambda *given: 0.9 * exact(*given))
    for measure in (PURE, ZCDP, GDP):
        made = oc.m.make_marginals(*ROWS, measure, 1, 0.5, 9)
        assert 0.25 <= made.map(1) <= 0.5


def test_the_example_of_the_talk():
    """n = 1,000, d = 10^4, ρ = 1/2: noise of scale 1/10 on each mean."""
    made = oc.m.make_marginals(*ROWS, ZCDP, 1, 0.5, 10_000)
    assert made.map(1) <= 0.5
    assert scale_of(made) / 1000 == pytest.approx(0.1, rel=1e-12)
    rows = np.random.default_rng(1).integers(0, 2, (1000, 10_000), dtype=np.uint8)
    errors = (made(rows) - rows.sum(axis=0)) / 1000
    assert np.std(errors) == pytest.approx(0.1, rel=0.06)  # 8 standard deviations
    assert abs(errors.mean()) < 0.008
    # each column as a launch of its own, by basic composition of pure DP, has 1,400 times the noise
    pure = oc.m.make_marginals(*ROWS, PURE, 1, 1.0, 10_000)
    assert scale_of(pure) == pytest.approx(10_000)


def test_noise_has_the_scale_that_is_stated():
    made = oc.m.make_marginals(*ROWS, ZCDP, 1, 0.5, 4000, step=0.5)
    found = made([])
    assert np.std(found) == pytest.approx(scale_of(made), rel=0.1)
    assert scale_of(made) == pytest.approx(0.5 * math.sqrt(4000) * 2)
    assert (found * 2 == np.rint(found * 2)).all()
    assert np.abs(found).max() <= made.accuracy(1e-12)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"columns": 2**24 + 1}, InvalidValueError, "^columns"),
        ({"bounds": (1, 0)}, InvalidValueError, "^bounds must have the lower"),
        ({"bounds": (0, math.nan)}, InvalidValueError, "^bounds must have the lower"),
        ({"bounds": (0, 2**31)}, InvalidValueError, "^bounds must have the lower"),
        ({"bounds": [(0, 1)] * 2}, InvalidValueError, "^bounds must be two numbers"),
        ({"pairs": [(0, 0)]}, InvalidValueError, "^pairs must be of two"),
        ({"pairs": [(0, 3)]}, InvalidValueError, "^pairs must be of two"),
        ({"pairs": [(0, 1), 2]}, InvalidTypeError, "^pairs must be pairs"),
        ({"bounds": (0, 2), "pairs": [(0, 1)]}, InvalidValueError, "^pairs must be of binary"),
        ({"output_measure": RENYI}, UnsupportedMeasureError, "^output_measure"),
        ({"input_domain": oc.integer_stream(0, 1)}, InvalidTypeError, "stream"),
    ],
)
def test_what_is_refused(given, error, words):
    names = "input_domain", "input_metric", "output_measure", "d_in", "d_out", "columns"
    usual = dict(zip(names, (*ROWS, PURE, 1, 1.0, 3), strict=True))
    with pytest.raises(error, match=words):
        oc.m.make_marginals(**{**usual, **given})


OTHERS = [
    np.zeros((77, 2)),
    np.zeros(77),
    np.zeros((77, 3), dtype=complex),
    np.array([["a" * 77] * 3]),
    sparse.csr_array((77, 2)),
    sparse.csr_array((77, 3), dtype=complex),
    np.zeros((77, 2), dtype=object),
    pl.DataFrame({"a": [1] * 77, "b": ["x"] * 77}),
]


@pytest.mark.parametrize("data", OTHERS)
def test_arrays_of_another_width_or_type_are_refused(data):
    """The refusal tells neither the number of rows nor the longest text."""
    with pytest.raises(dp.OpenDPException, match="3 columns"):
        quiet(data)
    with pytest.raises(InvalidTypeError) as caught:
        _columns(3, (0, 1), (), 1.0).sums(data)
    assert "77" not in str(caught.value)


BROKEN = [([-1, 0], [0, 1, 2]), ([0, 3], [0, 1, 2]), ([0, 1], [0, 2, 1])]


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize(("indices", "pointers"), BROKEN)
def test_a_malformed_sparse_matrix_is_refused(make, indices, pointers):
    """Before SciPy writes at an index outside of its arrays."""
    shape = (2, 3) if make is sparse.csr_array else (3, 2)
    table = make(shape)
    table.data, table.indices, table.indptr = np.ones(2), np.array(indices), np.array(pointers)
    with pytest.raises(InvalidValueError, match="well-formed"):
        _columns(shape[1], (0, 1), (), 1.0).sums(table)


FRAMES = {
    "polars": lambda columns: pl.DataFrame(columns, strict=False),
    "pandas": lambda columns: pytest.importorskip("pandas").DataFrame(columns),
}


ONES = [(1, 1, 1)] * 4


@pytest.mark.parametrize("odd", [(None, 1, 1), ("x", 1, 1), (1, 0.5, True)])
@pytest.mark.parametrize("kind", FRAMES)
def test_one_row_of_a_frame_moves_a_sum_by_one(kind, odd):
    columns, frames = _columns(3, (0, 1), [(0, 1)], 1.0), []
    for rows in (ONES, [*ONES, odd]):
        frames.append(
            FRAMES[kind]({name: [row[at] for row in rows] for at, name in enumerate("abc")})
        )
    without, found = map(columns.sums, frames)
    assert without == [4] * 4
    assert np.abs(np.subtract(found, without)).max() <= 1


def test_a_warning_that_is_an_error_changes_no_row():
    """Neither that of numbers which no double holds, nor that of complex numbers."""
    columns = _columns(2, (0, 1), (), 1.0)
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for row in ([np.longdouble("1e4000"), 1], np.array([1 + 1j, 1])):
            assert columns.sums([row] * 4) == columns.sums([*[row] * 4, "no row"]) == [4, 4]
