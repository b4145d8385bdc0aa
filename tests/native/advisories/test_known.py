"""What an owner accepts, and the page that lists the faults."""

from pathlib import Path

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import AdvisoryError, ConcurrentError, InvalidValueError
from opendp_concurrent.native.advisories import known
from opendp_concurrent.native.advisories.known import KNOWN, Advisory
from opendp_concurrent.native.opendp import measurement_map

ROOT = Path(__file__).parents[3]
BITS = dp.bitvector_domain(max_weight=1), dp.discrete_distance()


@pytest.fixture(autouse=True)
def accepted(monkeypatch):
    found = set()
    monkeypatch.setattr(known, "ACCEPTED", found)
    return found


def response():
    return dp.m.make_randomized_response_bitvec(*BITS, f=0.5)


def test_an_owner_accepts_one_fault_and_no_other():
    oc.accept_advisories("opendp#2935")
    with pytest.raises(AdvisoryError, match="opendp#2930"):
        measurement_map(response(), 1)
    oc.accept_advisories("opendp#2930")
    assert measurement_map(response(), 1) == response().map(1)


def test_accepting_a_threshold_is_believing_opendp():
    texts = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    made = dp.t.make_count_by(*texts) >> dp.m.then_laplace_threshold(1.0, 5)
    assert measurement_map(made, 1) != made.map(1)
    oc.accept_advisories("opendp#2922")
    assert measurement_map(made, 1) == made.map(1)


def test_unknown_references_accept_nothing(accepted):
    for wrong in ("2930", "opendp#1", "", "all"):
        with pytest.raises(InvalidValueError, match=r"^references \("):
            oc.accept_advisories("opendp#2930", wrong)
    for wrong in (2930, None, ["opendp#2930"]):
        with pytest.raises(ConcurrentError, match="^references"):
            oc.accept_advisories(wrong)
    assert accepted == set()


def test_no_message_accepts_a_fault(accepted):
    """A message calls constructors only."""
    message = oc.serialize(dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), 1))
    hostile = message.replace("make_laplace", "accept_advisories")
    for text in (hostile, hostile.replace("measurements", "opendp_concurrent")):
        with pytest.raises(ConcurrentError):
            oc.deserialize(text)
    assert accepted == set()


def test_a_mended_version_ends_an_advisory():
    assert Advisory(1, "", "").stands
    assert not Advisory(1, "", "", until=(0, 16)).stands
    assert Advisory(1, "", "", until=(0, 17)).stands


def test_the_page_and_the_facts_have_each_fault():
    page = (ROOT / "docs" / "advisories.rst").read_text(encoding="utf-8")
    facts = (ROOT / "tests" / "opendp_facts" / "test_fact_advisories.py").read_text("utf-8")
    for issue, one in KNOWN.items():
        assert f"https://github.com/opendp/opendp/issues/{issue}" in page
        assert f"_{issue}_" in facts
        assert one.reference == f"opendp#{issue}"
