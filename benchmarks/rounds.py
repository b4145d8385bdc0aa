"""What training by rounds costs, and how accurate it is, beside plain alternatives.

    python benchmarks/rounds.py [--quick] [--json] [--save]

A logistic regression on the survey of [Fair, 1978] (6,366 women; statsmodels, of the extra
``demo``): whether there was an affair. Columns are scaled by public ranges. The peers are training
without privacy, and as many rounds on all rows within the same ε, each a Gaussian launch, which
need 100 times as many gradients. Accuracy is on a fifth of the rows, which is left out.
"""

from __future__ import annotations

import numpy as np
import opendp.prelude as dp
from _timing import parser, print_machine, report
from statsmodels.datasets import fair

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError

dp.enable_features("contrib", "honest-but-curious")

EPSILON, ROUNDS = 1.0, 254  # the rounds within ε
DELTA, RATE, SIGMA, STEP = 1e-5, 0.01, 1.0, 4.0
TARGETS = {
    "sgd_rounds_1": ("at least", 254.0),
    "sgd_rounds_2": ("at least", 1202.0),
    "sgd_rounds_3": ("at least", 2666.0),
    "sgd_rounds_early_stop_saved": ("at least", 1.0),
    "sgd_ten_epochs_allocated_epsilon": ("at most", 1.703),
}
LOWEST, HIGHEST = [1, 17, 0.5, 0, 1, 9, 1, 1], [5, 42, 23, 5.5, 4, 20, 6, 6]


def survey() -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and to test on: a one, eight columns from -1/2 to 1/2, and the answer."""
    table = fair.load_pandas().data.to_numpy(dtype=float)
    columns = (table[:, :8] - LOWEST) / np.subtract(HIGHEST, LOWEST) - 0.5
    rows = np.column_stack([np.ones(len(table)), columns, table[:, 8] > 0])
    rows = rows[np.random.default_rng(0).permutation(len(rows))]
    return rows[: len(rows) // 5 * 4], rows[len(rows) // 5 * 4 :]


def gradient(weights: np.ndarray):
    return lambda row: (1 / (1 + np.exp(-row[:-1] @ weights)) - row[-1]) * row[:-1]


def accuracy(weights: np.ndarray, rows: np.ndarray) -> float:
    return float(np.mean((rows[:, :-1] @ weights > 0) == (rows[:, -1] > 0)))


def handle(rows: np.ndarray, epsilon: float, **plan):
    plan = plan or {"sample_rate": RATE}
    space = dp.numpy.array2_domain(T=float, num_columns=rows.shape[1]), dp.symmetric_distance()
    size = rows.shape[1] - 1
    return oc.m.make_dp_sgd(
        *space, (epsilon, DELTA), size=size, max_grad_norm=1.0, noise_multiplier=SIGMA, **plan
    )(rows)


def trained(sgd, rows: np.ndarray, rounds: int, share: float = RATE) -> np.ndarray:
    """The mean of the second half of the weights."""
    weights, kept = np.zeros(rows.shape[1] - 1), []
    for number in range(rounds):
        step = STEP / np.sqrt(1 + number / 20)
        weights = weights - step * sgd(gradient(weights)) / (share * len(rows))
        kept += [weights] if number >= rounds // 2 else []
    return np.mean(kept, axis=0)


def without_privacy(rows: np.ndarray) -> np.ndarray:
    weights = np.zeros(rows.shape[1] - 1)
    for _ in range(3000):
        odds = 1 / (1 + np.exp(-rows[:, :-1] @ weights))
        weights -= 2 * (odds - rows[:, -1]) @ rows[:, :-1] / len(rows)
    return weights


def by_launches(rows: np.ndarray, epsilon: float, rounds: int) -> np.ndarray:
    """The same number of rounds on all rows, each a Gaussian launch, by the exact sum of these."""
    low, high = 1e-3, 10.0
    for _ in range(60):
        middle = (low * high) ** 0.5
        fits = oc.TradeoffFunction.gaussian(middle).epsilon(DELTA) <= epsilon
        low, high = (middle, high) if fits else (low, middle)
    noise = dp.m.make_gaussian(
        dp.vector_domain(dp.atom_domain(T=float, nan=False), size=rows.shape[1] - 1),
        dp.l2_distance(T=float),
        rounds**0.5 / low,
    )

    def answer(function):
        each = np.array([function(row) for row in rows])
        each /= np.maximum(1, np.linalg.norm(each, axis=1))[:, None]
        return np.array(noise(each.sum(axis=0).tolist()))

    return trained(answer, rows, rounds, 1.0)


def rounds_within(epsilon: float) -> int:
    """How many rounds a filter admits, run on few rows."""
    sgd, count = handle(np.ones((10, 2)), epsilon), 0
    try:
        while True:
            sgd(lambda row: [0.0])
            count += 1
    except BudgetExceededError:
        return count


def stopped_early(rows: np.ndarray, planned: float, rounds: int):
    """ε of a plan that is not spent, counts of ε = 0.1 that fit into it, and the weights."""
    sgd = handle(rows, planned)
    weights = trained(sgd, rows, rounds)
    saved, counts = planned - sgd.privacy_loss()[0], 0
    space = dp.numpy.array2_domain(T=float, num_columns=rows.shape[1]), dp.symmetric_distance()
    count = dp.m.make_user_measurement(
        *space,
        dp.approximate(dp.max_divergence()),
        function=len,  # stands for any query of this price
        privacy_map=lambda d_in: (0.1 * d_in, 0.0),
    )
    while sgd.admits(count):
        sgd(count)
        counts += 1
    return saved, counts, weights


def counted(train: np.ndarray) -> tuple[dict[str, float], np.ndarray]:
    """How many rounds fit, what stopping early saves, and the weights of the model by then."""
    figures = {f"sgd_rounds_{epsilon}": float(rounds_within(epsilon)) for epsilon in (1, 2, 3)}
    saved, counts, weights = stopped_early(train, 2.0, 254)
    figures["sgd_rounds_early_stop_saved"] = saved
    figures["sgd_rounds_early_stop_counts"] = float(counts)
    return figures, weights


def main() -> None:
    options = parser(__doc__).parse_args()
    train, test = survey()
    figures, weights = counted(train)
    figures["sgd_accuracy_stopped_early"] = accuracy(weights, test)
    figures["sgd_accuracy_without_privacy"] = accuracy(without_privacy(train), test)
    figures["sgd_accuracy_most_common"] = accuracy(-np.eye(1, 9)[0], test)
    runs = 1 if options.quick else 10
    for name, train_once in (
        ("rounds", lambda: trained(handle(train, EPSILON), train, ROUNDS)),
        ("launches", lambda: by_launches(train, EPSILON, ROUNDS)),
    ):
        found = [accuracy(train_once(), test) for _ in range(runs)]
        figures[f"sgd_accuracy_{name}"] = float(np.mean(found))
    epochs = oc.fdp.Session.random_allocation(SIGMA, 100).power(10)
    figures["sgd_ten_epochs_allocated_epsilon"] = epochs.epsilon(DELTA)
    poisson = oc.fdp.Session.subsampled_gaussian(SIGMA, RATE).power(1000)
    figures["sgd_ten_epochs_poisson_epsilon"] = poisson.epsilon(DELTA)
    print_machine()
    report(figures, TARGETS, {}, options)


if __name__ == "__main__":
    main()
