"""Withdrawals of slots: every parameter, filter and page size, compared with the dataset.

The requests go to the local explorer without a socket in between, so that many of them take
seconds; nothing else is left out.
"""

from __future__ import annotations

import itertools

import httpx
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import v2
from beaconframes.endpoint import pagination as cursors
from beaconframes.fetch.source import ApiSource
from beaconframes.http.session import Session
from beaconframes.server.service import Service

from ..support.cases import every
from ..support.validator_sets import list_validator_sets

TYPES = ("manual", "partial_sweep", "full_exit_sweep", "system")
FILTERS = [None, *(c for n in range(1, 5) for c in itertools.combinations(TYPES, n))]
PATHS = {endpoint.path: endpoint for endpoint in v2.ENDPOINTS}
NOWHERE = "http://127.0.0.1:9"


class InProcess(httpx.BaseTransport):
    """A transport that calls the service in process."""

    def __init__(self, service):
        self.service = service

    def handle_request(self, request):
        answer = self.service.answer_v2(PATHS[request.url.path], request.read(), "premium")
        return httpx.Response(answer.status_code, content=bytes(answer.body))


@pytest.fixture(scope="module")
def service(chain):
    """Return the local explorer, without a server."""
    return Service(chain)


@pytest.fixture
def client(service):
    """Return an explorer connected to it."""
    explorer = bf.Explorer(
        NOWHERE, chain=service.chain, head=service.head, rate=100_000, store=False
    )
    session = Session(NOWHERE, rate=100_000, transport=InProcess(service))
    explorer.source = ApiSource(session, session, public=False)
    return explorer


@pytest.fixture(scope="module")
def paid(chain):
    """Return the withdrawals of the dataset, with the type derived from other tables.

    A withdrawal is manual where it pays the amount that its validator requested before. The
    events of switches and of rejected requests are rows as well.
    """
    free = chain.scan("validators").select("validator_index", "withdrawable_epoch")
    left = pl.col("withdrawable_epoch") <= pl.col("slot") // 32
    requests = chain.scan("withdrawal_request_events").rename({"slot": "requested"})
    payloads = (
        chain.scan("slot_withdrawals")
        .rename({"block_slot": "slot"})
        .join(free, on="validator_index")
        .join(requests, on=["validator_index", "amount_gwei"], how="left")
        .with_columns(
            type=pl.when(pl.col("requested") < pl.col("slot"))
            .then(pl.lit("manual"))
            .when(left)
            .then(pl.lit("full_exit_sweep"))
            .otherwise(pl.lit("partial_sweep"))
        )
    )
    switches = chain.scan("switch_events").filter(pl.col("amount_gwei") > 0)
    rejected = chain.scan("rejected_request_events")
    events = [
        switches.with_columns(type=pl.lit("system")),
        rejected.with_columns(type=pl.lit("manual")),
    ]
    columns = ["slot", "validator_index", "type", "amount_gwei"]
    return (
        pl.concat([rows.select(columns) for rows in (payloads, *events)])
        .select(
            "slot",
            "validator_index",
            "type",
            amount_wei=(pl.col("amount_gwei").cast(pl.Int128) * 10**9).cast(pl.Decimal(28, 0)),
        )
        .sort("slot", "validator_index", "type")
        .collect()
    )


@pytest.fixture(scope="module")
def around(paid):
    """Return a thousand slots around the first full withdrawal."""
    first = paid.filter(type="full_exit_sweep")["slot"][0]
    return range(first - 500, first + 500)


def holds(client, paid, slots, named, members, types, size):
    """Compare the rows and the number of requests of a call with the dataset."""
    expected = paid.filter(
        pl.col("slot").is_in(list(slots)),
        pl.lit(members is None) | pl.col("validator_index").is_in(members or []),
        pl.lit(types is None) | pl.col("type").is_in(types or []),
    )
    before = client.requests

    found = bf.v2.load_slot_withdrawals(slots, named, type_filter=types, explorer=client)

    assert_frame_equal(expected, found.select(expected.columns))
    counts = dict(expected.group_by("slot").len().iter_rows())
    least = sum(max(-(-counts.get(slot, 0) // size), 1) for slot in slots)
    assert least == client.requests - before


@pytest.mark.more
@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("which", every(3, range(11)))
def test_every_parameter_and_filter_selects_the_rows_of_the_dataset(
    which, step, chain, paid, around, client, monkeypatch
):
    """Every parameter with some of the combinations of types, on slots with full withdrawals."""
    named, members = (None, None) if which == 10 else list_validator_sets(chain)[which]
    middle = around[500]
    for number, types in [*enumerate(FILTERS)][which % step :: step]:
        size = (1, 3, 10)[number % 3]
        monkeypatch.setattr(cursors, "PAGE_SIZE", size)
        holds(client, paid, [middle, around[17 * number]], named, members, types, size)


@pytest.mark.long
@pytest.mark.parametrize("which", range(11))
def test_a_thousand_slots_by_every_parameter(which, chain, paid, around, client):
    """Ten rows per page."""
    named, members = (None, None) if which == 10 else list_validator_sets(chain)[which]

    holds(client, paid, around, named, members, None, 10)


@pytest.mark.long
@pytest.mark.parametrize("types", FILTERS)
def test_a_thousand_slots_by_every_combination_of_types(types, paid, around, client):
    """A type without withdrawals takes one request per slot, and returns no rows."""
    holds(client, paid, around, None, None, types, 10)


@pytest.mark.long
@pytest.mark.parametrize("size", [1, 3])
def test_a_thousand_slots_by_shorter_pages(size, paid, around, client, monkeypatch):
    """The rows do not depend on the page size."""
    monkeypatch.setattr(cursors, "PAGE_SIZE", size)

    holds(client, paid, around, None, None, None, size)


def test_requests_and_switches_have_their_types(paid, client):
    """Slots with a paid or rejected request, or with a switch to compounding credentials."""
    special = paid.filter(pl.col("type").is_in(["manual", "system"]))
    assert {"manual", "system"} == {*special["type"]}

    holds(client, paid, special["slot"].unique().sort().to_list(), None, None, None, 10)
