"""Requests of lomas' client are answered below a budget of this package.

The client builds, checks and encodes its requests, and decodes the responses, with its own models.
Only HTTP is left out. The part between is what a server does: decode, price, charge, run, answer.
"""

from base64 import b64decode
from io import BytesIO
from types import SimpleNamespace

import opendp.prelude as dp
import polars as pl
import pytest
from opendp.mod import OpenDPException

import opendp_concurrent as oc

pytest.importorskip("lomas_client", reason="run by hand, in an environment with lomas-client")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

from lomas_client.libraries import opendp as library
from lomas_core.error_handler import ExternalLibraryException
from lomas_core.models.requests import OpenDPQueryModel
from lomas_core.models.responses import CostResponse, OpenDPPolarsQueryResult, QueryResponse

dp.enable_features("contrib", "honest-but-curious")
ROWS = 344  # as many as there are penguins


class Server:
    """What follows a request: one budget for all, whose charge precedes each answer."""

    config = SimpleNamespace(dataset_name="PENGUIN")

    def __init__(self):
        frame = pl.LazyFrame({"mass": [3_000.0 + 10 * (one % 200) for one in range(ROWS)]})
        self.context = oc.concurrent_context(
            data=frame,
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(epsilon=1.0),
            margins=[dp.polars.Margin(by=[], max_length=1_000)],
        )

    def _query(self, body):
        query = self.context.query(epsilon=body.epsilon)
        query.polars_plan = pl.LazyFrame.deserialize(BytesIO(b64decode(body.opendp_json)))
        return query

    def post(self, endpoint, body):
        if endpoint == "estimate_opendp_cost":
            asked = self._query(body).resolve()
            epsilon = self.context.queryable.loss_after([asked])
            return CostResponse(epsilon=epsilon, delta=0.0).model_dump_json()
        assert isinstance(body, OpenDPQueryModel)
        try:
            released = self._query(body).release().collect()
        except (OpenDPException, ValueError) as error:
            raise ExternalLibraryException("opendp_polars", str(error)) from error
        return QueryResponse(
            epsilon=body.epsilon,
            delta=0.0,
            requested_by="ann",
            result=OpenDPPolarsQueryResult(value=released),
        ).model_dump_json()


@pytest.fixture
def client(monkeypatch):
    def validated(client, response, model):
        return model.model_validate_json(response)

    monkeypatch.setattr(library, "validate_model_response", validated)
    return library.OpenDPClient(Server())


def pipeline():
    """A plan as an analyst writes it, on a frame that has the names and types only."""
    context = dp.Context.compositor(
        data=pl.LazyFrame(schema={"mass": pl.Float64}),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=[], max_length=1_000)],
    )
    return context.query().select(dp.len()).polars_plan


def test_ten_tenths_of_a_budget_of_one_are_answered_and_the_next_is_refused(client):
    plan = pipeline()
    answers = [client.query(plan, epsilon=0.1, delta=0.0).result.value for _ in range(10)]
    assert all(one.shape == (1, 1) for one in answers)
    assert abs(sum(one.item() for one in answers) / 10 - ROWS) < 100
    with pytest.raises(ExternalLibraryException) as refused:
        client.query(plan, epsilon=0.1, delta=0.0)
    assert "refuses" in refused.value.error_message
    server = client.http_client
    assert server.context.current_privacy_loss() == pytest.approx(1.0)


def test_an_estimate_charges_nothing(client):
    for _ in range(20):
        cost = client.cost(pipeline(), epsilon=0.1, delta=0.0)
        assert cost.epsilon == pytest.approx(0.1)
    assert client.http_client.context.current_privacy_loss() == 0.0


def test_a_plan_that_is_not_private_is_refused_and_charges_nothing(client):
    bad = pl.LazyFrame(schema={"mass": pl.Float64}).select(pl.col("mass").sum())
    with pytest.raises(ExternalLibraryException):
        client.query(bad, epsilon=0.5, delta=0.0)
    assert client.http_client.context.current_privacy_loss() == 0.0
