"""Records of charges below limits, read part by part, are read as all other records are."""

from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.ledger import charges
from opendp_concurrent.ledger.charges import LimitedCharge, Opened, decode_charge
from opendp_concurrent.ledger.encoding import decode, encode

TERMS = '{"accumulator":{"basic":{}},"d_in":1}'
STRANGE = 'a ,"limit":{}, \\ \u00e9\U0001f600'
WRITTEN = (
    LimitedCharge(0.125, 1, (0.25,), ()),
    LimitedCharge(0.125, 12, (0.25, 0.125), (Opened(0, "ann", TERMS),)),
    LimitedCharge((1.0, 1e-6), 2, ((1.0, 1e-6),), (Opened(1, STRANGE, TERMS),)),
    LimitedCharge(
        LimitedCharge(1, 2, (), ()),
        2,
        (LimitedCharge(0.5, 2, (1, None), ()),),
        (Opened(7, "", ""),),
    ),
    LimitedCharge(0.5, 3, (0.5, 0.5), (Opened(0, "a", TERMS), Opened(2, "b", TERMS))),
)


def outcome(read, text):
    try:
        return repr(read(text))
    except InvalidValueError as error:
        return f"{type(error).__name__}: {error}"


TEXTS = [encode("value", value) for value in WRITTEN]


def edits(text):
    yield text
    for place in range(len(text) + 1):
        for new in ('"', "}", "[", ",", "0", "-"):
            yield text[:place] + new + text[place:]
            yield text[:place] + new + text[place + 1 :]
        yield text[:place] + text[place + 1 :]
        yield text[:place] + text[place:].partition(",")[2]


def test_each_edited_charge_is_read_or_refused_alike():
    for text in (*TEXTS, "", "7", '{"limited":', '{"limited":{"d_mid":1}}'):
        for edited in edits(text):
            assert outcome(decode_charge, edited) == outcome(decode, edited), edited


def test_common_charges_are_read_part_by_part(monkeypatch):
    monkeypatch.setattr(charges, "_FIRST", "never")
    whole = [decode_charge(text) for text in TEXTS]
    monkeypatch.undo()
    read = []
    monkeypatch.setattr(charges.encoding, "decode", lambda text: read.append(text) or decode(text))
    assert [decode_charge(text) for text in TEXTS] == whole
    assert not {TEXTS[0], TEXTS[1]} & set(read)
