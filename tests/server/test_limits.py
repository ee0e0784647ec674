"""Every limit and every error of V1, one row each: the request and the expected response."""

from __future__ import annotations

import httpx
import pytest

from beaconframes.server import Server

HUNDRED = ",".join(map(str, range(100)))
OVER_HUNDRED = ",".join(map(str, range(101)))
UNKNOWN_KEY = "0x" + "ab" * 48
ADDRESS = "0x" + "ab" * 20
ADDRESSES = ",".join(f"0x{number:040x}" for number in range(21))
LONG = "9" * 5_000

# The chain of the tests ends in epoch 469; its finalized epoch is 467.
OF_VALIDATORS = (
    "validator/{}", "validator/{}/proposals", "validator/{}/attestations",
    "validator/{}/balancehistory", "validator/{}/incomedetailhistory", "validator/{}/deposits",
    "validator/{}/blsChange", "validator/{}/execution/performance", "validator/{}/performance",
    "validator/{}/attestationefficiency", "validator/{}/withdrawals", "poolprotocol/validator/{}",
)  # fmt: skip
OF_SLOTS = (
    "attestations", "attesterslashings", "proposerslashings", "voluntaryexits", "withdrawals",
    "deposits",
)  # fmt: skip

NO_INDEX = "invalid validator argument, pubkey(s) did not resolve to a validator index"
NO_ADDRESS = "invalid eth1 address provided"
NO_PRODUCER = "invalid address, validator index or pubkey or exceeded max of 100 params"
NO_CREDENTIALS = "invalid withdrawal credentials or eth1 address provided"

ERRORS = [
    *((path.format(OVER_HUNDRED), "only a maximum of 100 query parameters are allowed")
      for path in OF_VALIDATORS),
    *((path.format("1, 2"), "invalid validator-parameter:  2") for path in OF_VALIDATORS),
    *((path.format("seven"), "invalid validator-parameter: seven") for path in OF_VALIDATORS),
    *((path.format("-1"), "invalid validator-parameter: -1") for path in OF_VALIDATORS),
    *((path.format("1,"), "invalid validator-parameter: ") for path in OF_VALIDATORS),
    *((path.format(UNKNOWN_KEY), NO_INDEX) for path in OF_VALIDATORS if "deposits" not in path),
    # One unknown key is an error, even if another validator of the request exists.
    (f"validator/5,{UNKNOWN_KEY}/blsChange", NO_INDEX),
    ("validator/5/proposals?epoch=latest", "invalid epoch parameter"),
    ("validator/5/proposals?epoch=-1", "invalid epoch parameter"),
    ("validator/5/proposals?epoch=", "invalid epoch parameter"),
    ("validator/5/attestations?startEpoch=369", "invalid start epoch parameter"),
    ("validator/5/attestations?startEpoch=470", "invalid start epoch parameter"),
    ("validator/5/attestations?startEpoch=401&endEpoch=400", "invalid start epoch parameter"),
    ("validator/5/attestations?startEpoch=new", "invalid start epoch parameter"),
    ("validator/5/attestations?endEpoch=470", "invalid end epoch parameter"),
    ("validator/5/attestations?endEpoch=369", "invalid end epoch parameter"),
    ("validator/5/attestations?endEpoch=-1", "invalid end epoch parameter"),
    *((f"validator/5/{path}?{query}", f"invalid {name} parameter")
      for path in ("balancehistory", "incomedetailhistory")
      for query, name in [
          ("latest_epoch=470", "latest epoch"), ("latest_epoch=new", "latest epoch"),
          ("latest_epoch=-1", "latest epoch"), ("limit=0", "limit"), ("limit=101", "limit"),
          ("limit=", "limit"), ("limit=-1", "limit"), ("offset=-1", "offset"),
          ("latest_epoch=5&offset=6", "offset"), ("offset=470", "offset"),
      ]),
    # Balances exist up to the head, income up to the finalized epoch.
    ("validator/5/incomedetailhistory?latest_epoch=468", "invalid latest epoch parameter"),
    (f"validator/stats/{UNKNOWN_KEY}", "invalid validator index"),
    ("validator/stats/1,2", "invalid validator index"),
    ("validator/stats/5?end_day=x", "invalid end_day parameter"),
    ("validator/stats/5?start_day=x", "invalid start_day parameter"),
    ("validator/stats/5?start_day=1.5", "invalid start_day parameter"),
    ("validator/stats/5?start_day=-2", "invalid start_day parameter"),
    ("validator/stats/5?start_day=2&end_day=1", "start_day must be less than end_day"),
    ("validators/proposalLuck", "no validators provided"),
    ("validators/proposalLuck?validators=", "no validators provided"),
    ("validators/proposalLuck?validators=seven", "could not parse validators"),
    (f"validators/proposalLuck?validators={OVER_HUNDRED}", "could not parse validators"),
    (f"validators/proposalLuck?validators={UNKNOWN_KEY}", "could not resolve pubkeys to indices"),
    *((f"validator/eth1/{who}", NO_ADDRESS)
      for who in ("0x12", ADDRESS + "00", "nobody.eth", "rich.com")),
    *((f"validator/withdrawalCredentials/{who}", NO_CREDENTIALS) for who in ("0x12", "nobody.eth")),
    *((f"epoch/{epoch}{path}", "invalid epoch parameter")
      for epoch in ("470", "-1", "newest", "1.5", "0x10", LONG) for path in ("", "/slots")),
    *((f"slot/{slot}", "could not parse slot number")
      for slot in ("newest", "-1", "1.5", "0x1234")),
    ("slot/999999", "could not retrieve db results"),
    *((f"slot/{bad}/{name}", "invalid block slot provided")
      for name in OF_SLOTS for bad in ("head", "1.5", "0x10", "finalized", "٣")),
    ("slot/15029/attestations", "slot is in the future. The latest slot is 15028"),
    ("slot/-1/attestations", "slot must be a positive number"),
    ("eth1deposit/0x12", "invalid eth1 tx hash provided"),
    ("eth1deposit/" + "zz" * 32, "invalid eth1 tx hash provided"),
    *((f"sync_committee/{period}", "invalid epoch parameter") for period in ("finalized", "-1")),
    *((f"sync_committee/{period}", "this period has no sync committee")
      for period in ("99999", LONG)),
    ("graffitiwall?startx=10&endx=9", "invalid area provided by the coordinates"),
    ("graffitiwall?slot=x", "invalid slot provided"),
    ("graffitiwall?startSlot=x", "invalid startSlot provided"),
    ("graffitiwall?startSlot=12000&slot=11000", "start slot greater than end slot"),
    ("graffitiwall?summarize=maybe", "invalid value for summarize provided"),
    # Exactly one record in the specification: an unknown day is not an empty list.
    *((f"yieldindex/{day}", "invalid day parameter")
      for day in ("today", "-1", "1.5", "999999", LONG)),
    *((f"validator/eth1/{ADDRESS}?{query}", f"invalid {name} parameter")
      for query, name in [("limit=0", "limit"), ("limit=2001", "limit"), ("limit=x", "limit"),
                          ("limit=", "limit"), ("offset=-1", "offset"), ("offset=x", "offset")]),
    *((f"graffitiwall?{name}={text}", f"invalid {name} provided")
      for name in ("startx", "starty", "endx", "endy") for text in ("-1", "abc", "")),
    (f"execution/block/{OVER_HUNDRED}", "only a maximum of 100 query parameters are allowed"),
    *((f"execution/block/{blocks}", "invalid block number")
      for blocks in ("latest", "-1", "1.5", "1,", "1, 2", LONG)),
    (f"execution/{OVER_HUNDRED}/produced", NO_PRODUCER),
    (f"execution/{ADDRESSES}/produced", "you are only allowed to query up to max 20 addresses"),
    *((f"execution/{who}/produced", NO_PRODUCER)
      for who in ("nobody", "0xab", "-1", "1,,2", UNKNOWN_KEY[2:])),
    *((f"execution/address/{who}", "error invalid address")
      for who in ("0xab", ADDRESS + "00", ADDRESS[:-1] + "g", "0xab/erc20tokens")),
    *((f"execution/address/{ADDRESS}?token={token}", "error invalid token query param")
      for token in ("0xab", "")),
    *((f"ens/lookup/{name}", "failed to resolve ens")
      for name in ("ab.eth", "somebody.com", "nobody-has-this-name.eth")),
    *((f"chart/{name}", "no data available for the requested chart")
      for name in ("nothing", "graffiti_wordcloud")),
]  # fmt: skip

EPOCHS = [
    ("validator/5/proposals", 369, 469),
    ("validator/5/proposals?epoch=150", 50, 150),
    ("validator/5/attestations", 370, 469),
    ("validator/5/attestations?startEpoch=370&endEpoch=469", 370, 469),
    ("validator/5/balancehistory", 370, 469),
    ("validator/5/balancehistory?limit=100", 370, 469),
    ("validator/5/balancehistory?limit=1", 469, 469),
    ("validator/5/balancehistory?latest_epoch=200&offset=10&limit=20", 171, 190),
    ("validator/5/balancehistory?latest_epoch=5&offset=5", 0, 0),
    ("validator/5/balancehistory?latest_epoch=5&limit=100", 0, 5),
    ("validator/5/incomedetailhistory", 368, 467),
    ("validator/5/incomedetailhistory?latest_epoch=467&limit=100", 368, 467),
    ("validator/5/incomedetailhistory?latest_epoch=200&offset=10&limit=20", 171, 190),
]
"""The first and the last epoch of an answer."""

SLOTS = [
    ("graffitiwall", 5_028, 15_028),
    ("graffitiwall?slot=12000", 2_000, 12_000),
    ("graffitiwall?startSlot=0", 0, 15_028),
]
"""The first and the last slot of the wall: 10,001 slots, unless the request has a start."""

NUMBERS = [
    *(f"validator/5/{path}={LONG}" for path in (
        "balancehistory?latest_epoch", "balancehistory?offset", "balancehistory?limit",
        "incomedetailhistory?latest_epoch", "attestations?startEpoch", "attestations?endEpoch",
        "proposals?epoch", "withdrawals?epoch",
    )),
    *(path.format(LONG) for path in OF_VALIDATORS),
    *(f"slot/{LONG}/{name}" for name in OF_SLOTS),
    *(f"graffitiwall?{name}={LONG}" for name in ("startx", "starty", "endx", "endy", "slot")),
    *(f"{path}/{LONG}" for path in ("slot", "yieldindex", "validator/stats")),
    f"validator/stats/5?start_day={LONG}", f"validator/stats/5?end_day={LONG}",
    f"validator/eth1/{ADDRESS}?limit={LONG}", f"validator/eth1/{ADDRESS}?offset={LONG}",
    f"execution/{LONG}/produced", f"execution/5/produced?offset={LONG}",
    f"graffitiwall?startSlot={LONG}", f"validators/proposalLuck?validators={LONG}",
    *(f"{path}?{name}={LONG}" for name in ("limit", "offset") for path in (
        "execution/5/produced", "slot/100/deposits", f"validator/withdrawalCredentials/{ADDRESS}",
        f"execution/address/{ADDRESS}/erc20tokens", "validator/5/incomedetailhistory",
    )),
    *(f"{path}/{LONG}" for path in (
        "epoch", "sync_committee", "execution/block", "execution/address", "ens/lookup",
        "eth1deposit", "validator/eth1", "validator/withdrawalCredentials", "chart",
    )),
    f"epoch/{LONG}/slots", f"execution/address/{ADDRESS}?token={LONG}",
]  # fmt: skip


POSTS = [
    ({"indicesOrPubkey": OVER_HUNDRED}, "only a maximum of 100 query parameters are allowed"),
    ({"indicesOrPubkey": "1, 2"}, "invalid validator-parameter:  2"),
    ({"indicesOrPubkey": UNKNOWN_KEY}, NO_INDEX),
    ({"indicesOrPubkey": 5}, "error decoding request body"),
    ({"indices": "5"}, "error decoding request body"),
    (["5"], "error decoding request body"),
]
"""Errors of the POST variant of the validator lookup."""


def make_test_id(row):
    """Return the id of a test, without its long numbers."""
    return str(row).replace(LONG, "long").replace(OVER_HUNDRED, "101")[:70]


@pytest.fixture(scope="module")
def client(chain):
    """A plain HTTP client of the local explorer."""
    with Server(chain) as server, httpx.Client(base_url=f"{server.url}/api/v1/") as client:
        yield client


@pytest.fixture(scope="module")
def send(client, chain):
    """Send a GET request for a path, or a POST request with a body."""
    token_counts = chain.scan("token_balances").group_by("address").len().sort("len").collect()
    richest = token_counts["address"][-1]

    def get(path):
        if not isinstance(path, str):
            return client.post("validator", json=path)
        return client.get(path.replace("RICHEST", richest))

    return get


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [(path, 400, {"status": f"ERROR: {message}", "data": None}) for path, message in ERRORS]
    + [(fields, 400, {"status": f"ERROR: {message}", "data": None}) for fields, message in POSTS]
    + [(path.format(HUNDRED), 200, None) for path in OF_VALIDATORS]
    + [(path, 200, range(first, last + 1)) for path, first, last in EPOCHS + SLOTS]
    + [({"indicesOrPubkey": HUNDRED}, 200, 100), ("validator/leaderboard", 200, 100)]
    + [(f"execution/block/{HUNDRED}", 200, None), ("execution/address/RICHEST", 200, 200)],
    ids=make_test_id,
)
def test_every_limit_and_every_error(send, path, status, body):
    """S10: an error has its status and message; a request at the limit is answered in full."""
    response = send(path)

    assert status == response.status_code, response.text[:200]
    content = response.json()
    if isinstance(body, dict):
        assert body == content
        return
    assert "OK" == content["status"]
    if isinstance(body, int):
        records = content["data"]
        assert body == len(records["tokens"] if "address" in path else records)
    if isinstance(body, range) and "wall" in path:
        slots = {record["slot"] for record in content["data"]}
        assert slots
        assert slots <= set(body)
    elif isinstance(body, range):
        epochs = {record["epoch"] for record in content["data"]}
        assert epochs <= set(body)
        # Proposals exist for some of the epochs, all other lists have rows for each epoch.
        assert epochs if "proposals" in path else set(body) == epochs


@pytest.mark.parametrize("path", NUMBERS, ids=make_test_id)
def test_no_number_is_too_long(send, path):
    """Numbers of five thousand digits are invalid or unknown, and never cause a failure."""
    response = send(path)

    assert response.status_code in {200, 400}, response.text[:200]
    assert {"status", "data"} == set(response.json())
