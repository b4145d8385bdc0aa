"""Training by rounds: what a round costs and sees, and what shares its budget."""

import copy
import gc
import pickle
import threading
from types import FunctionType, GeneratorType, ModuleType

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    BudgetExceededError,
    ConcurrentError,
    InvalidTypeError,
    InvalidValueError,
    LedgerError,
    PrivacyMapError,
    ReentrantLaunchError,
    charged,
)
from opendp_concurrent.ledger import create_ledger, open_ledger
from opendp_concurrent.training.dp_sgd import make_dp_sgd, then_dp_sgd

dp.enable_features("contrib", "honest-but-curious")
SPACE = dp.numpy.array2_domain(T=float, num_columns=3), dp.symmetric_distance()
MEASURE = dp.approximate(dp.max_divergence())
ROWS = np.arange(60.0).reshape(20, 3)
EPOCHS = {"sample_rate": None, "batches": 4}
D_OUT = (1.0, 1e-5)


def training(d_out=D_OUT, **changed):
    given = {
        "size": 3,
        "max_grad_norm": 1e3,
        "noise_multiplier": 1.0,
        "sample_rate": 0.01,
        **changed,
    }
    return make_dp_sgd(*SPACE, d_out, **{key: one for key, one in given.items() if one is not None})


def itself(row):
    return row


def fair_count():
    """A measurement of 0.1-DP on the same space."""
    return dp.m.make_user_measurement(
        *SPACE, MEASURE, lambda rows: len(rows), lambda d_in: (0.1 * d_in, 0.0)
    )


# --- what a round answers ---------------------------------------------------------------------


def test_all_rows_of_a_batch_are_summed_and_clipped():
    plan = {"noise_multiplier": 0.1, "sample_rate": 1.0}
    answer = training((500.0, 1e-5), max_grad_norm=101.0, **plan)(ROWS)(itself)
    assert np.allclose(answer, ROWS.sum(axis=0), atol=100)
    clipped = training((500.0, 1e-5), max_grad_norm=1.0, **plan)(ROWS)(itself)
    units = [row / np.linalg.norm(row) for row in ROWS]
    assert np.allclose(clipped, np.sum(units, axis=0), atol=1)


def test_each_row_is_in_one_batch_of_an_epoch_and_no_row_is_seen_twice():
    seen = []
    sgd = training((9.0, 1e-5), **EPOCHS)(ROWS)

    def gradient(row):
        seen.append(row[0])
        return row

    for number in range(1, 3):
        for _ in range(4):
            sgd(gradient)
        assert sorted(seen) == sorted([*ROWS[:, 0]] * number)
    assert sgd.privacy_loss()[0] == pytest.approx(
        oc.fdp.Session.random_allocation(1.0, 4).power(2).epsilon(1e-5), abs=1e-6
    )


def test_a_function_gets_a_copy_of_one_row():
    seen, copies = [], []

    def gradient(row):
        copies.append(row.base is None and row.shape == (3,) and row.flags.writeable)
        seen.append(row[0])
        row[:] = np.nan  # of the copy
        return [0.0, 0.0, 0.0]

    sgd = training(sample_rate=1.0, d_out=(500.0, 1e-5))(ROWS)
    sgd(gradient)
    sgd(gradient)
    assert seen == [*ROWS[:, 0], *ROWS[:, 0]]
    assert all(copies)


def test_an_example_is_not_changed_by_the_functions_that_are_tried_on_it():
    def gradient(row):
        row += 1.0
        seen.append(row[0])
        return row

    seen, example = [], np.zeros(3)
    sgd = training(example=example, sample_rate=2.0**-60)(ROWS)
    for _ in range(2):
        sgd(gradient)
    assert seen == [1.0, 1.0]
    assert not example.any()


@pytest.mark.parametrize("deep", [list, tuple])
def test_an_example_of_any_depth_is_kept_but_not_written(deep):
    example = 1.0
    for _ in range(10_000):
        example = deep([example])
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    made = make_dp_sgd(
        *space,
        D_OUT,
        size=1,
        max_grad_norm=1.0,
        noise_multiplier=1.0,
        sample_rate=0.01,
        example=example,
    )
    with pytest.raises(ConcurrentError, match="example is nested too deeply"):
        oc.serialize(made)


def test_rows_of_vectors_are_numbers():
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    training = space >> then_dp_sgd(
        (500.0, 1e-5), size=1, max_grad_norm=10.0, noise_multiplier=0.1, sample_rate=1.0
    )
    assert training([1.0, 2.0, 3.0])(lambda row: row) == pytest.approx(6.0, abs=8.0)


def test_rows_that_are_no_arrays_are_summed_too():
    """A round that fails on rows, and not without, would tell whether there are any."""
    space = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    measurement = space >> then_dp_sgd(
        (500.0, 1e-5), size=1, max_grad_norm=10.0, noise_multiplier=0.1, sample_rate=1.0
    )
    assert measurement(["a", "bb"])(lambda row: [len(row)]) == pytest.approx(3.0, abs=8.0)
    assert measurement([])(lambda row: [len(row)]) == pytest.approx(0.0, abs=8.0)


# --- what it costs ----------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "rounds"), [(1.0, 254)])
def test_equal_rounds_fit_as_if_they_were_fixed_up_front(epsilon, rounds):
    sgd = training((epsilon, 1e-5))(ROWS)
    for _ in range(rounds):
        sgd(itself)
    spent = sgd.privacy_loss()
    with pytest.raises(BudgetExceededError, match="one unit of rounds") as refused:
        sgd(itself)
    assert refused.value.charged is False
    assert sgd.privacy_loss() == spent
    assert spent[0] <= epsilon


def test_stopping_early_leaves_the_rest_to_other_queries():
    sgd, query = training()(ROWS), fair_count()
    for _ in range(50):
        sgd(itself)
    counts = 0
    while sgd.admits(query):
        assert sgd(query) == 20
        counts += 1
    assert counts >= 2
    assert sgd.privacy_loss() <= D_OUT
    assert sgd.remaining()[0] < 0.1


def test_only_the_first_round_of_an_epoch_is_charged():
    sgd = training((9.0, 1e-5), **EPOCHS)(ROWS)
    sgd(itself)
    spent = sgd.privacy_loss()
    for _ in range(3):
        sgd(itself)
    assert sgd.privacy_loss() == spent
    sgd(itself)
    assert sgd.privacy_loss() > spent


def test_a_refused_epoch_leaves_the_handle_usable():
    one = oc.fdp.Session.random_allocation(1.0, 4).epsilon(1e-5)
    sgd = training((one + 0.1, 1e-5), **EPOCHS)(ROWS)
    for _ in range(4):
        sgd(itself)
    for _ in range(2):
        with pytest.raises(BudgetExceededError):
            sgd(itself)
    assert sgd.privacy_loss()[0] == pytest.approx(one, abs=1e-6)


def test_the_map_is_the_bound_for_one_row():
    measurement = training()
    assert measurement.map(1) == D_OUT
    assert measurement.map(0) == D_OUT
    with pytest.raises(InvalidValueError, match="d_in"):
        measurement.map(2)
    sgd = measurement(ROWS)
    sgd(itself)
    with pytest.raises(PrivacyMapError):
        sgd.privacy_loss(2)


def test_it_is_launched_on_a_filter_at_its_bound():
    odometer = oc.make_concurrent_odometer(*SPACE, MEASURE)
    root = oc.make_concurrent_filter(odometer, d_in=1, d_out=(1.5, 2e-5))(ROWS)
    sgd, query = root(training()), fair_count()
    assert root.privacy_loss() == D_OUT
    assert sgd(itself).shape == (3,)
    assert sgd(query) == 20
    assert root(query) == 20
    with pytest.raises(BudgetExceededError):
        root(training())
    assert sgd(itself).shape == (3,)


def test_after_a_transformation():
    space = dp.vector_domain(dp.atom_domain(T=float)), dp.symmetric_distance()
    clamped = space >> dp.t.then_impute_constant(0.0) >> dp.t.then_clamp((0.0, 1.0))
    measurement = clamped >> then_dp_sgd(
        (500.0, 1e-5), size=1, max_grad_norm=1.0, noise_multiplier=0.1, sample_rate=1.0
    )
    assert measurement([5.0, -1.0, 0.5])(lambda row: row) == pytest.approx(1.5, abs=1.0)


def test_threads_share_one_budget():
    sgd, done = training()(ROWS), []

    def work():
        try:
            while True:
                done.append(sgd(itself))
        except BudgetExceededError:
            pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 254


# --- bad input --------------------------------------------------------------------------------


def fails(row):
    raise ValueError(f"row {row}")


@pytest.mark.parametrize(
    "gradient", [fails, lambda row: [np.nan] * 3, lambda row: row[:2], lambda row: None]
)
def test_a_function_that_fails_counts_zero_and_an_example_tells_it_first(gradient):
    sgd = training((500.0, 1e-5), noise_multiplier=0.1, max_grad_norm=1.0, sample_rate=1.0)(ROWS)
    assert np.all(np.abs(sgd(gradient)) < 1.0)
    assert sgd.privacy_loss()[0] > 0
    tried = training(example=np.zeros(3))(ROWS)
    with pytest.raises(InvalidValueError, match="nothing was charged") as error:
        tried(gradient)
    assert error.value.charged is False
    assert tried.privacy_loss() == (0.0, 0.0)
    assert tried(itself).shape == (3,)


@pytest.mark.parametrize(("plan", "rounds"), [({"sample_rate": 1.0}, 1), (EPOCHS, 4)])
def test_a_gradient_cannot_use_the_handle(plan, rounds):
    """Nor a round that is free: the next one of an epoch."""
    sgd = training((500.0, 1e-5), **plan)(ROWS)
    kept = []

    def gradient(row):
        for query in (fair_count(), itself):
            try:
                sgd(query)
            except ReentrantLaunchError as error:
                kept.append(error)
        return row

    for _ in range(rounds):
        sgd(gradient)
    assert len(kept) == 40


def test_the_frames_of_an_interrupt_have_no_rows():
    def interrupted(row):
        raise KeyboardInterrupt("a row")

    with pytest.raises(KeyboardInterrupt) as told:
        training((500.0, 1e-5), sample_rate=1.0)(ROWS)(interrupted)
    assert charged(told.value) is True
    assert told.value.args == ()
    where = told.value.__traceback__.tb_next  # the first frame is this one
    while where is not None:
        values = where.tb_frame.f_locals.values()
        assert not any(isinstance(one, np.ndarray | GeneratorType) for one in values)
        where = where.tb_next


@pytest.mark.parametrize("query", [None, 3, "gradient", [itself]])
def test_a_query_that_is_no_function_and_no_measurement(query):
    sgd = training()(ROWS)
    with pytest.raises(InvalidTypeError, match="function from one row") as error:
        sgd(query)
    assert error.value.charged is False
    assert sgd.privacy_loss() == (0.0, 0.0)


@pytest.mark.parametrize(
    ("changed", "error", "what"),
    [
        ({"sample_rate": 0.0}, InvalidValueError, "sample_rate"),
        ({"sample_rate": 1.1}, InvalidValueError, "sample_rate"),
        ({"sample_rate": -0.1}, InvalidValueError, "sample_rate"),
        ({"sample_rate": float("nan")}, InvalidValueError, "sample_rate"),
        ({"sample_rate": None}, InvalidTypeError, "sample_rate and batches"),
        ({"batches": 10}, InvalidTypeError, "sample_rate and batches"),
        ({"sample_rate": None, "batches": 1}, InvalidValueError, "batches"),
        ({"sample_rate": None, "batches": 0}, InvalidValueError, "batches"),
        ({"sample_rate": None, "batches": 10**6}, InvalidValueError, "batches"),
        ({"noise_multiplier": 0.0}, InvalidValueError, "noise_multiplier"),
        ({"noise_multiplier": 1e-3}, InvalidValueError, "noise_multiplier"),
        ({"noise_multiplier": 2e6}, InvalidValueError, "noise_multiplier"),
        ({"noise_multiplier": 0.3, **EPOCHS}, InvalidValueError, "noise_multiplier"),
        ({"size": 0}, InvalidValueError, "size"),
        ({"size": 2**27}, InvalidValueError, "size"),
        ({"max_grad_norm": 0.0}, InvalidValueError, "max_grad_norm"),
        ({"max_grad_norm": float("inf")}, InvalidValueError, "max_grad_norm"),
        ({"d_out": (1.0, 0.0)}, InvalidValueError, "d_out"),
        ({"d_out": 1.0}, InvalidTypeError, "d_out"),
        ({"ledger": "a file"}, InvalidTypeError, "ledger"),
    ],
)
def test_arguments_that_are_out_of_range(changed, error, what):
    with pytest.raises(error, match=what):
        training(**changed)


def test_spaces_without_rows_that_come_and_go():
    given = {"size": 1, "max_grad_norm": 1.0, "noise_multiplier": 1.0, "sample_rate": 0.5}
    with pytest.raises(InvalidTypeError, match="input_domain"):
        make_dp_sgd(dp.atom_domain(T=int), dp.absolute_distance(T=int), D_OUT, **given)
    vectors = dp.vector_domain(dp.atom_domain(T=int), size=10)
    with pytest.raises(InvalidValueError, match="input_metric"):
        make_dp_sgd(vectors, dp.change_one_distance(), D_OUT, **given)


# --- data, ledger, records --------------------------------------------------------------------


def test_data_are_not_reachable_from_the_handle():
    sgd = training()(np.full((4, 3), 123456.75))
    assert "123456" not in repr(sgd)
    for how in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            how(sgd)
    sgd(itself)
    seen, waiting = set(), [sgd]
    while waiting:  # all that Python reaches from it, but for modules and classes
        one = waiting.pop()
        if id(one) not in seen and not isinstance(one, (ModuleType, type, FunctionType)):
            seen.add(id(one))
            assert not isinstance(one, np.ndarray) or one.shape != (4, 3)
            waiting += gc.get_referents(one)


def test_a_part_of_a_native_composition():
    root = dp.c.make_adaptive_composition(*SPACE, MEASURE, d_in=1, d_mids=[D_OUT, (0.1, 0.0)])(ROWS)
    sgd = root(training())
    assert sgd(itself).shape == (3,)
    assert root(fair_count()) == 20


def test_a_ledger_keeps_the_rounds_of_all_processes(tmp_path):
    path = tmp_path / "rounds.db"
    with create_ledger(path, dataset="rows") as ledger:
        sgd = training(ledger=ledger)(ROWS)
        for _ in range(3):
            sgd(itself)
        sgd(fair_count())
        spent = sgd.privacy_loss()
    with open_ledger(path, dataset="rows") as ledger:
        again = training(ledger=ledger)(ROWS)
        assert again.privacy_loss() == spent
        again(itself)
        assert again.privacy_loss() > spent
        with pytest.raises(LedgerError):
            training(ledger=ledger, noise_multiplier=2.0)
        same = dp.t.make_user_transformation(*SPACE, *SPACE, lambda x: x, lambda d_in: d_in)
        with pytest.raises(InvalidTypeError, match="ledger"):
            same >> training(ledger=ledger)


@pytest.mark.parametrize("plan", [{}, EPOCHS])
def test_a_plan_costs_what_the_accountant_says(plan):
    session = (
        oc.fdp.Session.random_allocation(1.0, 4)
        if plan
        else oc.fdp.Session.subsampled_gaussian(1.0, 0.01)
    )
    sgd = training((9.0, 1e-5), **plan)(ROWS)
    sgd(itself)
    assert sgd.privacy_loss()[0] == pytest.approx(session.epsilon(1e-5), abs=1e-6)
