import inspect
import re

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent._checks import CONSTRUCTORS, Count, Record
from opendp_concurrent.composition.guards import constructor
from opendp_concurrent.errors import InvalidValueError

MADE = [
    made
    for group in (oc.c, oc.m, oc.t)
    for name in group.__all__
    if hasattr(made := vars(group)[name], "__features__")
]


@pytest.fixture
def make():
    before = dict(CONSTRUCTORS)

    @constructor(features=("honest-but-curious",))
    def make_of_a_test(count: Count) -> dp.Measure:
        return dp.user_divergence(str(count))

    yield make_of_a_test
    CONSTRUCTORS.clear()
    CONSTRUCTORS.update(before)


def test_a_constructor_checks_its_arguments_and_records_them(make):
    made = make(3)
    assert type(made.__opendp_dict__) is Record
    assert made.__opendp_dict__["__kwargs__"] == {"count": 3}
    with pytest.raises(InvalidValueError, match="^count "):
        make(count=0)


def test_a_constructor_needs_its_features(make):
    dp.disable_features("honest-but-curious")
    try:
        with pytest.raises(dp.OpenDPException, match="honest-but-curious"):
            make(3)
    finally:
        dp.enable_features("honest-but-curious")


@pytest.mark.parametrize("make", MADE, ids=lambda one: one.__name__)
def test_the_docs_say_which_features_are_needed(make):
    said = re.search(r"Required features: ([^\n]*(\n    [^\n]+)*)", inspect.getdoc(make) or "")
    if said is not None:
        assert tuple(re.findall(r"`([a-z-]+)`", said[1])) == make.__features__
