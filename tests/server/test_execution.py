"""The local explorer's execution layer, names, pool and charts, as any other client sees them."""

from __future__ import annotations

from io import BytesIO

import httpx
import pytest
from PIL import Image

from beaconframes.server import Server

ADDRESS = f"0x{'ab' * 20}"


@pytest.fixture(scope="module")
def ask(chain):
    """A client of the local explorer that is not ours."""
    with Server(chain) as server, httpx.Client(base_url=server.url) as client:
        yield client.get


def test_an_address_that_was_never_seen(ask):
    """It has an answer all the same, without its name; with or without 0x, in any case."""
    for written in (ADDRESS, ADDRESS[2:], ADDRESS.upper().replace("X", "x")):
        answer = ask(f"/api/v1/execution/address/{written}")

        assert {"address": "0x", "ether": "0", "tokens": []} == answer.json()["data"]
        assert 200 == answer.status_code


def test_the_token_list_of_nobody_is_empty(ask):
    """A bad limit or offset is what it would be by default."""
    for query in ("", "?limit=0", "?limit=-1", "?limit=201", "?limit=x&offset=x"):
        answer = ask(f"/api/v1/execution/address/{ADDRESS}/erc20tokens{query}")

        assert {"status": "OK", "data": []} == answer.json()


def test_an_address_that_nobody_named(ask):
    """It is echoed, with an empty name."""
    expected = {"address": ADDRESS, "domain": ""}

    for written in (ADDRESS, ADDRESS[2:], ADDRESS.upper().replace("X", "x")):
        assert expected == ask(f"/api/v1/ens/lookup/{written}").json()["data"]


@pytest.mark.parametrize(
    "name",
    ["validators", "staked_ether", "average_balance", "participation_rate", "blocks", "deposits"],
)
def test_a_chart_is_a_picture(ask, name):
    """A PNG that says that the chain is simulated, with a line on paper."""
    answer = ask(f"/api/v1/chart/{name}")

    assert "image/png" == answer.headers["content-type"]
    picture = Image.open(BytesIO(answer.content))
    assert (800, 400) == picture.size
    colours = {colour for _, colour in picture.getcolors(maxcolors=2**20)}
    assert {(255, 255, 255), (31, 119, 180)} <= colours


def test_charts_are_different_pictures(ask):
    """Each shows its own numbers."""
    names = ("validators", "staked_ether", "participation_rate")

    assert 3 == len({ask(f"/api/v1/chart/{name}").content for name in names})
