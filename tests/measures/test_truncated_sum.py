"""Sums of truncated concentrated losses."""

import opendp_concurrent as oc
from opendp_concurrent.measures.truncated import TruncatedSum


def test_what_remains_of_truncated_losses_has_the_omega_of_the_bound():
    bound = oc.TruncatedConcentrated(0.75, 4.0)
    spent = TruncatedSum().after(oc.TruncatedConcentrated(0.5, 8.0))
    assert spent.remaining(bound) == oc.TruncatedConcentrated(0.25, 4.0)
    assert spent.after(spent.remaining(bound)).within(bound)
    assert not spent.after(oc.TruncatedConcentrated(0.25, 3.9)).within(bound)
