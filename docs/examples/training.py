"""A model is trained while an analyst asks about it: one budget in f-DP.

    python docs/examples/training.py

The data are the survey of R. C. Fair (1978), which statsmodels contains as ``fair``. It needs the
extra ``demo``.
"""

from math import nextafter

import numpy as np
import opendp.prelude as dp
from statsmodels.datasets import fair

import opendp_concurrent as oc

dp.enable_features("contrib", "honest-but-curious")

EPSILON, DELTA = 1.0, 1e-6  # the budget, for one respondent
RATE, STEPS = 1 / 64, 400  # Poisson sampling, and steps of training
ROUNDS, LEARNING_RATE = 8, 0.02
COUNTS = 4  # noisy counts of the analyst
GRID = 2**20  # gradients are multiples of 1/GRID, so that sums are exact
LEVELS = {  # of the questionnaire
    "rate_marriage": (1, 5),
    "age": (17.5, 42),
    "yrs_married": (0.5, 23),
    "children": (0, 5.5),
    "religious": (1, 4),
    "educ": (9, 20),
}
F, Session = oc.TradeoffFunction, oc.fdp.Session
WIDTH = len(LEVELS) + 1  # of a model
RESPONDENT = dp.user_domain(
    "Respondent",
    lambda row: (
        isinstance(row, tuple)
        and len(row) == WIDTH + 1
        and all(isinstance(one, float) for one in row)
    ),
)
SPACE = dp.vector_domain(RESPONDENT), dp.symmetric_distance()
VECTORS = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)


def respondents():
    """Return the answers, scaled to [-1, 1] by the questionnaire, then 1, then the label."""
    survey = fair.load_pandas().data
    scaled = [
        (2 * survey[name] - low - high) / (high - low) for name, (low, high) in LEVELS.items()
    ]
    ones, labels = np.ones(len(survey)), (survey["affairs"] > 0).astype(float)
    return list(map(tuple, np.column_stack([*scaled, ones, labels]).tolist()))


def sampler(rate):
    """Return a function from n to n independent bits, each True with probability ``rate``, exactly.

    OpenDP's randomized response flips each bit of a vector with probability f/2, exactly.
    """
    bits = dp.bitvector_domain(max_weight=1), dp.discrete_distance()
    flip = dp.m.make_randomized_response_bitvec(*bits, f=2 * rate)

    def sample(n):
        flipped = np.frombuffer(flip(bytes(n // 8 + 1)), dtype=np.uint8)
        return np.unpackbits(flipped)[:n].astype(bool)

    return sample


def gradients(weights, rows):
    """Return gradients of the logistic loss in units of 1/GRID, of norm at most GRID, exactly.

    A row whose gradient is not finite has a gradient of 0.
    """
    features, labels = rows[:, :-1], rows[:, -1]
    with np.errstate(all="ignore"):
        errors = 1 / (1 + np.exp(-np.clip(features @ weights, -30, 30))) - labels
        each = errors[:, None] * features
        each = np.where(np.isfinite(each), each, 0.0)
        norms = np.sqrt((each * each).sum(axis=1, keepdims=True))
    units = np.trunc(each / np.maximum(norms, 1.0) * (GRID - 1)).astype(np.int64)
    fits = (units * units).sum(axis=1, keepdims=True) <= GRID**2  # in integers
    return np.where(fits, units, 0)


def training_noise(scale):
    """Return Gaussian noise for vectors of floats, whose map is certified Gaussian DP."""
    return oc.m.make_certified_gaussian(*VECTORS, scale, oc.gaussian_tradeoff())


def training_loss(scale, steps=STEPS):
    """Return the losses of all steps together, in both directions of neighbours."""
    mu = training_noise(scale).map(1.0)
    return Session.subsampled_gaussian(nextafter(1 / mu, 0.0), RATE).power(steps)


def both_ways(session):
    """Return one trade-off function for all pairs of neighbours: the worse direction at each ε."""
    points = np.linspace(0.0, session.epsilon(1e-9), 200)
    return F.from_profile(points.tolist(), session.delta(points).tolist())


def make_training(scale, steps=STEPS):
    """Return an interactive measurement: each query is a model, each answer a noisy gradient."""
    noise, sample = training_noise(scale), sampler(RATE)
    whole = both_ways(training_loss(scale, steps))

    def function(data):
        rows, left = np.array(data).reshape(len(data), WIDTH + 1), steps

        def transition(weights, is_internal):
            nonlocal left
            model = np.array(weights, dtype=float).reshape(WIDTH)
            if left == 0 or not np.all(np.abs(model) <= 1e6):
                raise ValueError(f"at most {steps} models, of numbers up to 10^6")
            left -= 1
            taken = rows[sample(len(rows))]
            total = gradients(model, taken).sum(axis=0) / GRID  # exact: below 2^53 units
            return noise(total.tolist())

        return dp.new_queryable(transition, Q="ExtrinsicObject", A="ExtrinsicObject")

    def privacy_map(d_in):
        return whole.group(d_in) if d_in else F.identity()

    return dp.m.make_user_measurement(
        *SPACE, oc.tradeoff(), function, privacy_map, TO="ExtrinsicObject"
    )


def is_right(weights, row):
    """Whether a model predicts the label of a row."""
    return (float(np.dot(weights, row[:-1])) > 0) == bool(row[-1])


def make_count_right(weights):
    """Return a noisy count of the respondents for whom a model is right."""
    integers = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    right = dp.t.make_user_transformation(
        *SPACE,
        *integers,
        lambda rows: [1 for row in rows if is_right(weights, row)],
        lambda d_in: d_in,
    )
    noise = oc.m.then_certified_laplace(scale=10.0, output_measure=oc.tradeoff())
    return right >> dp.t.then_count() >> noise


def make_alarm():
    """Return a sparse vector that stops at the first model that is right often enough."""
    pure = oc.m.make_above_threshold(*SPACE, dp.max_divergence(), 1, scale=20.0, threshold=0)
    return oc.c.cast(pure, oc.tradeoff())


def losses_of_queries():
    """Return what the analyst may launch."""
    count = make_count_right([0.0] * WIDTH)
    return [make_alarm().map(1), *[count.map(1)] * COUNTS]


def analyse(rows):
    """Train, and query in between, under one budget."""
    queries = losses_of_queries()
    beside = F.identity().compose(*queries)
    found = oc.fdp.smallest_sigma(
        lambda scale: both_ways(training_loss(scale)),
        EPSILON,
        DELTA,
        beside=beside,
        bounds=(0.5, 100.0),
        tolerance=1e-2,
    )
    training = make_training(found.value)
    budget = oc.make_concurrent_composition(
        *SPACE, oc.tradeoff(), 1, [training.map(1), *queries], order="any"
    )
    root = budget(rows)
    steps, alarm = root(training), root(make_alarm())
    weights, average = np.zeros(WIDTH), np.zeros(WIDTH)
    counts, rung = [], False
    for turn in range(ROUNDS):
        average = np.zeros_like(weights)
        for _ in range(STEPS // ROUNDS):
            weights = weights - LEARNING_RATE * np.array(steps(weights.tolist()))
            average += weights / (STEPS // ROUNDS)
        if not rung:  # is the model right for 70 %, and not for 30 %?
            model = average.copy()
            rung = alarm(
                lambda rows, m=model: sum(3 if is_right(m, row) else -7 for row in rows) // 7
            )
        if turn % 2 == 1:
            counts.append(root(make_count_right(average)))
    steps_alone = training_loss(found.value)
    apart = [steps_alone.epsilon(DELTA / 2), beside.epsilon(DELTA / 2)]
    alone = oc.fdp.smallest_sigma(
        training_loss, EPSILON - apart[1], DELTA / 2, bounds=(0.5, 100.0), tolerance=1e-2
    )
    return {
        "scale": found.value,
        "scale_apart": alone.value,
        "evaluations": found.evaluations,
        "model": average,
        "counts": counts,
        "rung": rung,
        "session": steps_alone.compose(beside).epsilon(DELTA),
        "together": budget.map(1).epsilon(DELTA),
        "apart": apart,
        "launch": root,
    }


def accuracy(weights, rows):
    """Return the share of rows for which a model is right."""
    return sum(is_right(weights, row) for row in rows) / len(rows)


def without_noise(rows):
    """Return a model that is trained on all rows, without privacy."""
    everyone, weights = np.array(rows), np.zeros(WIDTH)
    for _ in range(2000):
        weights -= gradients(weights, everyone).sum(axis=0) / GRID / len(rows)
    return weights


def main():
    """Print what is released, and what it costs."""
    rows = respondents()
    found = analyse(rows)
    share = sum(row[-1] for row in rows) / len(rows)
    print(f"scale of the noise: {found['scale']:.3f}, found with {found['evaluations']} plans")
    print(f"    if accounted for apart:   {found['scale_apart']:.3f}")
    print("accuracy")
    print(f"    of the larger class:      {max(share, 1 - share):.3f}")
    print(f"    of the private model:     {accuracy(found['model'], rows):.3f}")
    print(f"    of one without privacy:   {accuracy(without_noise(rows), rows):.3f}")
    print(f"noisy counts of right predictions: {found['counts']}, of {len(rows)}")
    print(f"epsilon at delta {DELTA:g}")
    print(f"    both under one budget:    {found['together']:.3f}")
    print(f"    in one session:           {found['session']:.3f}")
    first, second = found["apart"]
    print(f"    apart, at delta/2 each:   {first:.3f} + {second:.3f} = {first + second:.3f}")


if __name__ == "__main__":
    main()
