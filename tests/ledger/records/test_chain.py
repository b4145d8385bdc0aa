"""The hash of a charge: of all that it says, and of all before it."""

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from opendp_concurrent.ledger.encoding import canonical, first_hash, hasher

from ..conftest import next_hash


def test_the_hashes_are_those_of_the_texts():
    """Pinned: another version must not make others under the same schema."""
    text = '["opendp_concurrent",1,"survey",null]'
    assert first_hash("survey", None) == sha256(text.encode()).hexdigest()
    text = (
        '["00","survey",1,1700000000000000,"mean","laplace(scale=2.0)","{\\"double\\":\\"0x0\\"}"]'
    )
    d_mid = canonical('{"double":"0x0"}')
    found = hasher("survey", "mean", "laplace(scale=2.0)")("00", 1, 1_700_000_000_000_000, d_mid)
    assert found == sha256(text.encode()).hexdigest()


TEXTS = st.text() | st.sampled_from(['"', "\\", "\n", "\u2028", "\x7f", "é", "\U0001f600", "{}"])


@given(
    dataset=TEXTS,
    label=TEXTS,
    mechanism=TEXTS,
    d_mid=TEXTS,
    sequence=st.integers(),
    time=st.integers(),
)
def test_the_hash_of_alike_charges_is_that_of_each(
    dataset, label, mechanism, d_mid, sequence, time
):
    before = first_hash("survey", None)
    alike = hasher(dataset, label, mechanism)
    charge = (dataset, sequence, time, label, mechanism, d_mid)
    assert alike(before, sequence, time, canonical(d_mid)) == next_hash(before, charge)
