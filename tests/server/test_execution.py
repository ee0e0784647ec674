"""The local explorer's execution layer, names, pool and charts, requested with plain HTTP."""

from __future__ import annotations

from io import BytesIO

import httpx
import polars as pl
import pytest
from PIL import Image

from beaconframes.answers.charts import draw_chart
from beaconframes.answers.view import DatasetViews
from beaconframes.dataset import Dataset
from beaconframes.server import Server

ADDRESS = f"0x{'ab' * 20}"


@pytest.fixture(scope="module")
def get(chain):
    """A plain HTTP client of the local explorer."""
    with Server(chain) as server, httpx.Client(base_url=server.url) as client:
        yield client.get


def test_unknown_address(get, chain):
    """E12: its balance is 0, in each spelling; the public wire does not return the address."""
    for written in (ADDRESS, ADDRESS[2:], ADDRESS.upper().replace("X", "x")):
        response = get(f"/api/v1/execution/address/{written}")

        assert {"address": ADDRESS, "ether": "0", "tokens": []} == response.json()["data"]
        assert 200 == response.status_code
    query = "is_public=True&unknown_address=0x"
    assert ADDRESS == get(f"/api/v1/execution/address/{ADDRESS}?{query}").json()["data"]["address"]
    with Server(chain, wire="public") as server:
        answer = httpx.get(f"{server.url}/api/v1/execution/address/{ADDRESS}").json()
    assert {"address": "0x", "ether": "0", "tokens": None} == answer["data"]


def test_tokens_of_an_unknown_address(chain):
    """The list is empty; an invalid limit or offset of the public wire means the default."""
    with Server(chain, wire="public") as server, httpx.Client(base_url=server.url) as client:
        for query in ("", "?limit=0", "?limit=-1", "?limit=201", "?limit=x&offset=x"):
            response = client.get(f"/api/v1/execution/address/{ADDRESS}/erc20tokens{query}")

            assert {"status": "OK", "data": []} == response.json()


def test_address_without_a_name(get):
    """The answer has the address and an empty name."""
    expected = {"address": ADDRESS, "domain": ""}

    for written in (ADDRESS, ADDRESS[2:], ADDRESS.upper().replace("X", "x")):
        assert expected == get(f"/api/v1/ens/lookup/{written}").json()["data"]


def test_blocks_are_the_newest_first_unless_the_request_says_asc(get):
    """Any other text, or none, is the default."""

    def load(query):
        records = get(f"/api/v1/execution/{','.join(map(str, range(100)))}/produced?{query}").json()
        return [record["blockNumber"] for record in records["data"]]

    newest, oldest = load("limit=100"), load("limit=100&sort=asc")

    assert sorted(newest, reverse=True) == newest == load("limit=100&sort=zzz")
    assert sorted(oldest) == oldest
    assert oldest[0] < newest[-1]


def test_an_early_end_of_the_wall_is_slot_10000(get, chain):
    """The public service raises an earlier end to it."""
    slots = chain.scan("graffiti_wall").select(pl.col("slot").unique().sort()).collect()["slot"]
    near = [slot for slot in slots if 9_950 <= slot <= 10_000]

    for query in ("slot=5", "slot=10000"):
        answer = get(f"/api/v1/graffitiwall?startSlot=9950&{query}&summarize=false").json()
        assert near == sorted(pixel["slot"] for pixel in answer["data"])
    assert 10_001 in slots


@pytest.mark.parametrize(
    "name",
    ["validators", "staked_ether", "average_balance", "participation_rate", "blocks", "deposits"],
)
def test_a_chart_is_a_picture(get, name):
    """A chart is a PNG with a line on a white background."""
    response = get(f"/api/v1/chart/{name}")

    assert "image/png" == response.headers["content-type"]
    picture = Image.open(BytesIO(response.content))
    assert (800, 400) == picture.size
    colors = {color for _, color in picture.getcolors(maxcolors=2**20)}
    assert {(255, 255, 255), (31, 119, 180)} <= colors


def test_a_chart_of_epochs_in_any_order_is_the_same(chain, tmp_path):
    """Epochs that are written before earlier ones do not change the picture."""
    epochs = chain.scan("epochs").filter(pl.col("epoch") < 20).sort("epoch").collect()
    pictures = []
    for name, first, second in (("in-order", 0, 10), ("later-first", 10, 0)):
        dataset = Dataset.create(tmp_path / name, meta=chain.meta)
        for start in (first, second):
            dataset.write("epochs", [epochs.slice(start, 10)])
        pictures.append(draw_chart(DatasetViews(dataset).current(), "staked_ether"))

    assert pictures[0] == pictures[1]


def test_charts_are_different_pictures(get):
    """Each chart shows its own values."""
    names = ("validators", "staked_ether", "participation_rate")

    assert 3 == len({get(f"/api/v1/chart/{name}").content for name in names})
