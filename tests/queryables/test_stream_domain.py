"""What a mechanism on static data knows of streams."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.composition.guards import check_static
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.queryables.stream import MESSAGES, feeds_many, is_stream

STATIC = dp.vector_domain(dp.atom_domain(T=int))


def test_a_stream_is_known_by_its_domain():
    assert is_stream(oc.integer_stream(0, 1))
    assert not is_stream(STATIC)
    check_static(STATIC)
    with pytest.raises(InvalidTypeError, match="is a stream, whose items come later"):
        check_static(oc.integer_stream(0, 1))


def test_one_stream_feeds_many_under_pure_dp_only():
    assert feeds_many(dp.max_divergence())
    assert not feeds_many(dp.zero_concentrated_divergence())
    assert not feeds_many(dp.approximate(dp.max_divergence()))


def test_a_session_has_fewer_than_2_to_the_63_messages():
    assert MESSAGES(max_messages=2**63 - 1) == 2**63 - 1
    with pytest.raises(InvalidValueError, match="max_messages"):
        MESSAGES(max_messages=2**63)
