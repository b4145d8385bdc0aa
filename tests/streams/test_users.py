"""Users in a record: equal ones stay equal, and what JSON has no word for is told."""

import json

import numpy as np
import pytest

from opendp_concurrent.errors import InvalidTypeError
from opendp_concurrent.streams.mechanism import from_json, to_json

USERS = [
    None,
    True,
    0,
    -7,
    2**63 - 1,
    2**63,
    -(2**80),
    0.5,
    -0.0,
    float("inf"),
    "ann",
    "",
    b"\x00\xff",
    (),
    ("ann", 3, (b"x", None)),
]


@pytest.mark.parametrize("user", USERS, ids=repr)
def test_a_user_is_the_same_after_a_record(user):
    found = from_json(json.loads(json.dumps(to_json(user))))
    assert found == user
    assert type(found) is type(user)
    assert hash(found) == hash(user)


@pytest.mark.parametrize("user", [np.int64(3), np.float64(0.5), np.str_("ann"), np.bool_(True)])
def test_a_number_of_numpy_is_kept_as_its_equal(user):
    found = from_json(json.loads(json.dumps(to_json(user))))
    assert found == user
    assert hash(found) == hash(user)


def test_integers_beyond_64_bits_are_text_which_any_reader_of_json_keeps():
    assert to_json(2**63 - 1) == 2**63 - 1
    assert to_json(2**63) == {"int": "0x8000000000000000"}


def test_different_users_stay_different():
    texts = [json.dumps(to_json(user)) for user in [*USERS, "0", ("0",), b"ann"]]
    assert len(set(texts)) == len(texts)


class Number(int):
    pass


@pytest.mark.parametrize(
    "user", [float("nan"), [1], {"a": 1}, frozenset({1}), Number(3), (1, [2]), 1j]
)
def test_what_cannot_be_kept_is_named(user):
    with pytest.raises(InvalidTypeError, match="^a user has the type"):
        to_json(user)
