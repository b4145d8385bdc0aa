"""Examples in docstrings use ``dp`` and ``oc``, with OpenDP's features enabled."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc


@pytest.fixture(autouse=True)
def _names_of_examples(request):
    if isinstance(request.node, pytest.DoctestItem):
        dp.enable_features("contrib", "honest-but-curious")
        request.node.dtest.globs.update(dp=dp, oc=oc)
