"""Each class says its tag once, and the table is complete whenever the package is imported."""

import subprocess
import sys
from dataclasses import dataclass

import pytest

import opendp_concurrent as oc
from opendp_concurrent import _checks as written
from opendp_concurrent._checks import KINDS, Kind
from opendp_concurrent.errors import InvalidValueError

TAGS = {
    *(
        "advanced",
        "any_time",
        "basic",
        "curve",
        "either",
        "function",
        "ladder",
        "ladder-at-delta",
        "laplace",
    ),
    *("limit", "limited", "on-blocks", "on-each-block", "orders", "pair", "renyi"),
    *("residue", "subsampled", "tcdp", "zcdp"),
}
SENT = {
    "TruncatedConcentrated",
    "advanced",
    "any_time",
    "basic",
    "either",
    "renyi",
    "residue",
    "zcdp",
}
_EITHER = oc.accumulators.basic(), oc.accumulators.zcdp(0.25)
ACCUMULATORS = [  # and a distance
    *(oc.accumulators.advanced(0.25), oc.accumulators.renyi(2.0, 0.25), *_EITHER),
    *(oc.accumulators.either(*_EITHER), oc.accumulators.residue(0.25)),
    oc.accumulators.any_time(0.25, 2.0),
    oc.TruncatedConcentrated(0.25, 2.0),
]


@pytest.fixture
def tables(monkeypatch):
    """What a test adds is forgotten after it."""
    for name in ("KINDS", "BY_CLASS", "AROUND"):
        monkeypatch.setattr(written, name, dict(getattr(written, name)))


def test_all_that_is_written_is_known_in_a_process_that_has_imported_nothing_else():
    """Names of values where a message is read, tags where a ledger is used."""
    pytest.importorskip("sqlalchemy")
    code = (
        "import opendp_concurrent; print(*opendp_concurrent._checks.READ)\n"
        "import opendp_concurrent.ledger; print(*opendp_concurrent._checks.KINDS)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, tags = found.stdout.splitlines()
    assert {*names.split()} >= SENT
    assert {*tags.split()} == TAGS


def test_a_class_is_written_by_its_attributes(tables):
    @written.tagged("toy", "same", other="attribute")
    @dataclass(frozen=True)
    class Toy:
        same: int
        attribute: str

    kind = written.BY_CLASS[Toy]
    assert kind is written.KINDS["toy"]
    assert (kind.keys, kind.parts(Toy(1, "a"))) == (("same", "other"), {"same": 1, "other": "a"})
    assert kind.make({"same": 1, "other": "a"}) == Toy(1, "a")


def test_a_field_without_a_key_is_refused(tables):
    with pytest.raises(InvalidValueError, match="lacks lost: a field without a key"):

        @written.tagged("toy")
        @dataclass(frozen=True)
        class Toy:
            lost: int


def test_a_class_that_takes_a_tag_takes_it_from_the_older_one(tables):
    class Older:
        pass

    class Newer:
        pass

    for one in (Older, Newer):
        written.add(Kind("toy", one, (), lambda value: {}, lambda parts: None))
    assert written.KINDS["toy"].cls is Newer
    assert Older not in written.BY_CLASS


def test_a_message_has_the_fields_of_a_value_and_the_tag_of_its_class():
    assert {written.VALUES[type(one)](one)[0] for one in ACCUMULATORS} == SENT
    for one in ACCUMULATORS:
        name, arguments = written.VALUES[type(one)](one)
        assert written.READ[name](**arguments) == one


def test_no_two_classes_of_the_package_have_one_tag():
    assert len({kind.cls for kind in KINDS.values()}) == len(KINDS)
