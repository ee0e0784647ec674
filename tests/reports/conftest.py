"""One report of the simulated chain for all tests, and the tables that it is made from."""

import warnings
from datetime import UTC, datetime
from types import SimpleNamespace

import httpx
import polars as pl
import pytest

from beaconframes.client import Explorer
from beaconframes.reports import page
from beaconframes.reports.inputs import load_inputs
from beaconframes.reports.report import make_report

MINE = [3, 5, 8, 11, 40, 41]
FIRST, LAST = 230, 440
PRICES = pl.DataFrame(
    {
        "time": [datetime(2026, 10, 1, 9, tzinfo=UTC), datetime(2026, 10, 1, 20, tzinfo=UTC)],
        "eur": [2500.0, 2612.5],
    }
)


@pytest.fixture(scope="session")
def made(running):
    """The inputs, the report of six validators over 211 epochs, and the paths of its requests."""
    sent = []
    send = httpx.HTTPTransport.handle_request

    def record(transport, request):
        sent.append(request.url.path)
        return send(transport, request)

    with (
        pytest.MonkeyPatch.context() as patch,
        warnings.catch_warnings(),
        Explorer(running.url, chain=running.service.chain, head=running.service.head) as explorer,
    ):
        patch.setattr(httpx.HTTPTransport, "handle_request", record)
        warnings.simplefilter("error")
        explorer.about = {"service": "simulated", "simulated": True}
        groups = {"A": MINE[:3], "B": MINE[3:]}
        inputs = load_inputs(
            None,
            since=FIRST,
            until=LAST,
            groups=groups,
            detail="auto",
            explorer=explorer,
            prices=PRICES,
            price="eur",
        )
        report = make_report(inputs)
    return SimpleNamespace(inputs=inputs, report=report, sent=sent)


@pytest.fixture(scope="session")
def tables(chain):
    """The rows of the six validators and the epochs of the report, as the simulator wrote them."""
    epochs = pl.col("epoch").is_between(FIRST, LAST)
    mine, proposer = pl.col("validator_index").is_in(MINE), pl.col("proposer_index").is_in(MINE)
    conditions = {
        "validators": mine,
        "income_history": mine & epochs,
        "balance_history": mine & pl.col("epoch").is_between(FIRST, LAST + 1),
        "validator_withdrawals": mine & epochs,
        "blocks": proposer & epochs,
        "execution_blocks": proposer & epochs,
        "missed_reward_events": mine & epochs,
        "validator_stats": mine,
        "yield_index": pl.lit(value=True),
    }
    return {name: chain.scan(name).filter(rows).collect() for name, rows in conditions.items()}


@pytest.fixture
def no_charts(monkeypatch):
    """Leave the charts of pages empty: to draw them takes a second."""
    monkeypatch.setattr(page, "render_svg", lambda picture: f'<svg id="{picture.name}"></svg>')
