"""Slots, deposits, queue and names on the local explorer, from a hand-made dataset."""

from __future__ import annotations

import dataclasses
import json
import warnings

import httpx
import polars as pl
import pytest

import beaconframes as bf
from beaconframes import errors
from beaconframes.calendar import MAINNET
from beaconframes.dataset import Dataset
from beaconframes.server import Server
from beaconframes.v1 import ENDPOINTS
from beaconframes.v1._execution_requests import REQUEST_LISTS

from ..support.replay import replaying
from ..support.whole_records import whole, whole_frame

HEAD = 4000
TABLES = {endpoint.table.table_name: endpoint.table for endpoint in (*ENDPOINTS, *REQUEST_LISTS)}
RICH, POOR, UNKNOWN_ADDRESS = ("0x" + byte * 20 for byte in ("a1", "b2", "c3"))
ROOTS = {100: "0x" + "10" * 32, 101: "0x" + "11" * 32, HEAD - 1: "0x" + "40" * 32}
ORPHAN = "0x" + "01" * 32
TX = "0x" + "7e" * 32


def key(number):
    return f"0x{number:096x}"


def make_rows():
    """Return the rows of every table: a missed slot, an orphaned block, long lists."""
    blocks = [
        {"slot": slot, "epoch": slot // 32, "block_root": root, "status": "proposed", "votes": slot}
        for slot, root in ROOTS.items()
    ]
    blocks.append({"slot": 100, "epoch": 3, "block_root": ORPHAN, "status": "orphaned", "votes": 1})
    blocks += [
        {"slot": slot, "epoch": slot // 32, "block_root": None, "status": status}
        for slot, status in ((102, "missed"), (HEAD, "missed"))
    ]
    items = [
        {"block_slot": slot, "block_root": ROOTS[slot], "block_index": index}
        for slot, index in ((100, 0), (100, 1), (100, 2), (101, 0))
    ]
    kinds = ("attester_slashings", "proposer_slashings", "voluntary_exits", "slot_deposits")
    return {
        "blocks": blocks,
        "slot_attestations": [item | {"validators": [3, 1, 2]} for item in items],
        **dict.fromkeys(kinds, items),
        "slot_withdrawals": [
            {"block_slot": 100, "withdrawal_index": index, "amount_gwei": 1} for index in (7, 8)
        ],
        "deposits": [
            {"tx_hash": TX, "tx_index": 0, "merkletree_index": f"0x0{n}", "amount_gwei": n}
            for n in range(3)
        ],
        "names": [{"requested": "rich.eth", "address": RICH, "domain": "rich.eth"}],
        "deposit_origin": [
            {"from_address": RICH, "pubkey": key(n), "valid_signature": True,
             "validator_index": n if n < 4000 else None}
            for n in range(4001)
        ] + [
            {"from_address": POOR, "pubkey": key(9), "valid_signature": valid, "validator_index": 9}
            for valid in (True, False)
        ],
        "withdrawal_credentials": [
            {"credentials": f"0x0{1 + n % 2}{'00' * 11}{RICH[2:]}", "validator_index": n,
             "pubkey": key(n)}
            for n in range(450)
        ],
        "validator_queue": [{"validators_count": 4000, "entering_count": 3, "exiting_count": 2}],
        "validators": [{"validator_index": 0, "pubkey": key(0)}],
        "deposit_requests": [
            {"block_slot": 100, "block_root": ROOTS[100], "request_index": n, "amount_gwei": n}
            for n in range(102)
        ],
        "consolidation_requests": [
            {"block_slot": slot, "request_index": n, "source_index": n, "target_index": 7}
            for slot, n in ((100, 0), (100, 1), (101, 0))
        ],
        "switch_to_compounding_requests": [
            {"block_slot": 100, "request_index": n, "address": RICH, "validator_index": n}
            for n in (0, 1)
        ],
    }  # fmt: skip


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """A dataset of a chain with head slot 4000."""
    chain = dataclasses.asdict(MAINNET) | {
        "name": "hand-made", "genesis": MAINNET.genesis.isoformat()
    }  # fmt: skip
    meta = {"chain": chain, "latest_epoch": 125, "finalized_epoch": 123, "latest_slot": HEAD}
    made = Dataset.create(tmp_path_factory.mktemp("hand") / "made", meta=meta)
    for name, records in make_rows().items():
        made.write(name, [whole_frame(TABLES[name], records)])
    return made


@pytest.fixture
def service(dataset):
    """The dataset on a local explorer that loaders use."""
    with bf.local(dataset) as running:
        yield running


@pytest.fixture(scope="module")
def get(dataset):
    """A plain HTTP client of a server that all tests share."""
    with Server(dataset) as server, httpx.Client(base_url=f"{server.url}/api/v1") as client:
        yield client.get


@pytest.fixture(scope="module")
def get_public(dataset):
    """A plain HTTP client of a server with the public wire."""
    with (
        Server(dataset, wire="public") as server,
        httpx.Client(base_url=f"{server.url}/api/v1") as client,
    ):
        yield client.get


def data(answer):
    assert 200 == answer.status_code, answer.text
    return answer.json()["data"]


SLOT_LISTS = (
    "attestations", "attesterslashings", "proposerslashings", "voluntaryexits", "withdrawals",
    "deposits",
)  # fmt: skip
ERRORS = [
    ("/slot/102", "could not retrieve db results"),
    ("/slot/latest", "could not retrieve db results"),
    ("/slot/4001/attestations", "slot is in the future. The latest slot is 4000"),
]


@pytest.mark.parametrize(("path", "words"), ERRORS)
def test_a_slot_without_a_block(get, path, words):
    """A missed, scheduled or future slot is an error with the message of the service."""
    answer = get(path)

    assert 400 == answer.status_code
    assert {"status": f"ERROR: {words}", "data": None} == answer.json()


@pytest.mark.parametrize(
    ("text", "root"),
    [
        ("100", ROOTS[100]),
        ("101", ROOTS[101]),
        ("head", ROOTS[HEAD - 1]),
        (ORPHAN, ORPHAN),
        (ORPHAN[2:].upper(), ORPHAN),
    ],
)
def test_a_block_by_slot_word_and_root(get, text, root):
    """The answer is one object with votes; a slot with two blocks has the canonical one."""
    block = data(get(f"/slot/{text}"))

    assert root == block["blockroot"]
    assert {"votes", "withdrawalcount"} < set(block)


def test_an_unknown_root_is_an_empty_list(get):
    """The answer is an empty list, as on the service."""
    assert [] == data(get(f"/slot/{'99' * 32}"))


def test_only_single_blocks_have_votes(get):
    """The blocks of an epoch have no votes."""
    assert "votes" not in data(get("/epoch/3/slots"))[0]


@pytest.mark.parametrize("name", SLOT_LISTS)
def test_the_items_of_a_slot(get, name):
    """A list has the items of its block; attestations and withdrawals are in ascending order."""
    items = data(get(f"/slot/100/{name}"))

    index = "withdrawalindex" if name == "withdrawals" else "block_index"
    order = {"attestations": [0, 1, 2], "withdrawals": [7, 8]}.get(name, [2, 1, 0])
    assert order == [item[index] for item in items]
    assert {100} == {item["block_slot"] for item in items}


@pytest.mark.parametrize("name", SLOT_LISTS)
def test_a_slot_without_items(get, name):
    """The list is empty, for the latest slot as well; only attestations refuse a future slot."""
    assert [] == data(get(f"/slot/102/{name}"))
    assert [] == data(get(f"/slot/latest/{name}"))
    if name != "attestations":
        assert [] == data(get(f"/slot/4001/{name}"))


def test_the_fields_of_an_item_are_those_of_the_specification(get):
    """Lists of indices are arrays, and there are no further fields."""
    (attestation,) = data(get("/slot/101/attestations"))
    (slashing,) = data(get("/slot/101/attesterslashings"))

    assert [3, 1, 2] == attestation["validators"]
    assert {
        "aggregationbits", "beaconblockroot", "block_index", "block_root", "block_slot",
        "committeeindex", "signature", "slot", "source_epoch", "source_root", "target_epoch",
        "target_root", "validators",
    } == set(attestation)  # fmt: skip
    halves = ("beaconblockroot", "index", "indices", "signature", "slot", "source_epoch",
              "source_root", "target_epoch", "target_root")  # fmt: skip
    assert {f"attestation{n}_{half}" for n in (1, 2) for half in halves} | {
        "block_index", "block_root", "block_slot"
    } == set(slashing)  # fmt: skip


def test_deposits_of_a_slot_in_pages(get, get_public):
    """Limit and offset select deposits; on the public wire invalid values mean the default."""
    assert [1] == [d["block_index"] for d in data(get("/slot/100/deposits?offset=1&limit=1"))]
    assert 3 == len(data(get_public("/slot/100/deposits?offset=x&limit=-1")))


def test_a_transaction_by_its_hash(get):
    """The hash may have 0x or not; a transaction without deposits is no error."""
    assert [0, 1, 2] == [deposit["amount"] for deposit in data(get(f"/eth1deposit/{TX}"))]
    assert data(get(f"/eth1deposit/{TX}")) == data(get(f"/eth1deposit/{TX[2:].upper()}"))
    assert [] == data(get(f"/eth1deposit/{'0' * 64}"))


@pytest.mark.parametrize("address", [RICH, RICH.upper().replace("X", "x"), RICH[2:], "Rich.ETH"])
def test_depositors_by_address_and_by_name(get, address):
    """A page has up to 2,000 keys by index, those without an index last."""
    first, last = (
        data(get(f"/validator/eth1/{address}")),
        data(get(f"/validator/eth1/{address}?offset=3999")),
    )

    assert list(range(2000)) == [record["validator_index"] for record in first]
    assert [3999, None] == [record["validator_index"] for record in last]
    assert {"public_key", "valid_signature", "validator_index"} == set(first[0])


@pytest.mark.parametrize(
    ("query", "count"),
    [("limit=7", 7), ("limit=2001", 2000), ("limit=x", 2000), ("limit=-1", 2000), ("limit=0", 0),
     ("offset=4000", 1), ("offset=5000", 0), ("offset=-1", 2000)],
)  # fmt: skip
def test_pages_of_depositors_are_never_an_error(get_public, query, count):
    """On the public wire, a value out of range means the nearest value or the default."""
    assert count == len(data(get_public(f"/validator/eth1/{RICH}?{query}")))


def test_address_without_deposits(get):
    """The list is empty."""
    assert [] == data(get(f"/validator/eth1/{UNKNOWN_ADDRESS}"))


@pytest.mark.parametrize(
    ("address", "query", "first"),
    [
        (RICH, "", list(range(10))),
        ("rich.eth", "?limit=3&offset=2", [2, 3, 4]),
        (RICH[2:], "?limit=200", list(range(200))),
        (f"0x01{'00' * 11}{RICH[2:]}", "", list(range(0, 20, 2))),
        (f"0x02{'00' * 11}{RICH[2:]}", "?limit=2", [1, 3]),
        (UNKNOWN_ADDRESS, "", []),
    ],
)
def test_validators_by_credentials(get, address, query, first):
    """Ten by default, 200 at most; an address matches both kinds of credentials."""
    found = data(get(f"/validator/withdrawalCredentials/{address}{query}"))

    assert first == [record["validatorindex"] for record in found]


def test_the_queue_is_an_object(get):
    """The fields are those of the service."""
    assert {
        "validatorscount": 4000, "beaconchain_entering": 3, "beaconchain_exiting": 2,
        "beaconchain_entering_balance": None, "beaconchain_exiting_balance": None,
    } == data(get("/validators/queue"))  # fmt: skip


def test_a_slot_without_a_block_is_named(service):
    """A missed slot, the latest slot and an unknown root are listed in the warning."""
    with pytest.warns(bf.MissingRows, match="slot 102; slot 4000") as caught:
        found = bf.load_slots([101, 102, "latest", ORPHAN, "0x" + "99" * 32])

    assert [(100, ORPHAN), (101, ROOTS[101])] == found.select("slot", "block_root").rows()
    missing = caught[0].message.missing
    assert {102, HEAD, None} == set(missing["slot"])
    assert {None, "0x" + "99" * 32} == set(missing["block_root"])
    with pytest.raises(bf.MissingRows):
        bf.load_slots(102, strict=True)


@pytest.mark.filterwarnings("error")
def test_slots_without_items_are_not_missing(service):
    """A block may have no items, and a slot may have no block."""
    for name in ("slot_attestations", "attester_slashings", "slot_withdrawals", "slot_deposits"):
        found = getattr(bf, f"load_{name}")(["latest", 102, 101])
        none = getattr(bf, f"load_{name}")(102)

        assert {101} >= set(found["block_slot"])
        assert 0 == none.height
        assert found.schema == none.schema


def test_the_latest_slot_once(service):
    """Its name and its number are one request."""
    bf.load_voluntary_exits(["latest", HEAD, str(HEAD), HEAD])

    assert 1 == service.requests


@pytest.mark.parametrize(("address", "keys", "requests"), [(RICH, 4001, 3), (POOR, 2, 1),
                                                       ("rich.eth", 4001, 3)])  # fmt: skip
def test_every_page_of_a_depositor(service, address, keys, requests):
    """2,000 keys per page; a key with both kinds of signatures has two rows."""
    found = bf.load_deposit_origin(address)

    assert keys == found.height
    assert {address} == set(found["from_address"])
    assert requests + (keys == 4001) == service.requests
    assert found.sort("from_address", "pubkey", "valid_signature").equals(found)
    assert found["validator_index"].null_count() == (keys == 4001)


@pytest.mark.parametrize("count", [2000, 2500])
def test_a_repeated_page_is_an_error(count):
    """A service that ignores the offset causes an error after two requests."""
    records = [{"public_key": key(n), "valid_signature": True} for n in range(count)]
    reply = json.dumps({"status": "OK", "data": records}).encode()

    with (
        replaying({"*": reply}) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000) as explorer,
        pytest.raises(errors.PaginationError, match="page 2 has only records of earlier pages"),
    ):
        bf.load_deposit_origin(RICH, explorer=explorer)

    where = f"GET /api/v1/validator/eth1/{RICH}?"
    assert [f"{where}offset=0&limit=2000", f"{where}offset={count}&limit=2000"] == server.arrived


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("slots", {"slot": 101, "epoch": 3, "status": "1", "blockroot": ORPHAN}),
        ("slot_attestations", {"block_slot": 101, "block_index": 0, "block_root": ORPHAN}),
        ("slot_withdrawals", {"block_slot": 101, "withdrawalindex": 5}),
        (
            "transaction_deposits",
            {"tx_hash": ORPHAN, "block_number": 1, "tx_index": 0, "merkletree_index": "0x00"},
        ),
    ],
)
def test_items_of_another_slot_are_an_error(name, record):
    """Rows of a slot or transaction that was not requested raise IntegrityError."""
    table = next(endpoint.table for endpoint in ENDPOINTS if endpoint.name == name)
    reply = json.dumps({"status": "OK", "data": [whole(table, record)]}).encode()

    with (
        replaying({"*": reply}) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000) as explorer,
        pytest.raises(errors.IntegrityError, match="not requested"),
    ):
        getattr(bf, f"load_{name}")(
            TX if name == "transaction_deposits" else 100, explorer=explorer
        )


def test_an_address_without_deposits_is_not_missing(service):
    """An address without deposits is not missing."""
    found = bf.load_deposit_origin([POOR, UNKNOWN_ADDRESS, POOR[2:].upper()])

    assert 2 == service.requests
    assert [(POOR, False), (POOR, True)] == found.select("from_address", "valid_signature").rows()


@pytest.mark.parametrize("frame", ["polars", "pandas"])
def test_a_zero_that_is_not_validator_zero_is_null(service, dataset, tmp_path, frame):
    """V10: an explorer may write 0 for "none yet"; the loader detects it in any kind of frame."""
    schema = TABLES["deposit_origin"].schema()
    false = [{"from_address": POOR, "pubkey": key(n), "valid_signature": True,
              "validator_index": index} for n, index in ((0, 0), (5, 0), (6, 6))]  # fmt: skip
    wrong = Dataset.create(tmp_path / "wrong", meta=dataset.meta)
    wrong.write("deposit_origin", [pl.from_dicts(false, schema=schema)])
    wrong.write("validators", [dataset.scan("validators").collect()])

    with bf.local(wrong) as running, bf.settings(frame=frame):
        found = bf.load_deposit_origin(POOR)

        assert 2 == running.requests
    make_rows = pl.from_pandas(found) if frame == "pandas" else found
    assert [0, None, 6] == make_rows["validator_index"].to_list()


def test_every_page_of_some_credentials(service):
    """200 validators per page; the requested address is a column."""
    found = bf.load_withdrawal_credentials(RICH)

    assert 3 == service.requests
    assert list(range(450)) == found["validator_index"].to_list()
    assert {RICH} == set(found["credentials"])


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (lambda: bf.load_slots("newest"), "newest"),
        (lambda: bf.load_slots(-1), "-1"),
        (lambda: bf.load_slots(HEAD + 1), "4001"),
        (lambda: bf.load_slots("0x1234"), "0x1234"),
        (lambda: bf.load_slots([1, True]), "True"),
        (lambda: bf.load_slot_withdrawals([1.5]), "1.5"),
        (lambda: bf.load_attester_slashings("head"), "head"),
        (lambda: bf.load_slot_attestations(HEAD + 1), "4001"),
        (lambda: bf.load_voluntary_exits(HEAD + 1), "4001"),
        (lambda: bf.load_transaction_deposits("0x12"), "0x12"),
        (lambda: bf.load_transaction_deposits(12), "12"),
        (lambda: bf.load_deposit_origin("somebody"), "somebody"),
        (lambda: bf.load_deposit_origin(TX), "0x7e7e"),
        (lambda: bf.load_withdrawal_credentials(key(1)), "0x0000"),
    ],
)
def test_bad_input_is_refused_before_anything_is_sent(service, load, words):
    """The error names the value."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(errors.UsageError, match=words):
            load()

    assert 0 == service.requests


REQUEST_PATHS = (
    "/slot/{}/deposit_requests", "/slot/{}/consolidation_requests",
    "/slot/{}/switch_to_compounding_requests", "/validator/{}/consolidation_requests",
    "/validator/{}/switch_to_compounding_requests",
)  # fmt: skip


@pytest.mark.parametrize("wire", ["spec", "public"])
def test_requests_of_the_execution_layer(get, get_public, wire):
    """E15: lists of requests by slot or validator are arrays with limit and offset."""
    ask = get if wire == "spec" else get_public

    requests = data(ask("/slot/100/deposit_requests"))
    assert [*range(100)] == [item["amount"] for item in requests]
    assert {
        "block_slot", "block_root", "request_index", "pubkey", "withdrawal_credentials", "amount",
        "signature",
    } == set(requests[0])  # fmt: skip
    page = ask("/slot/100/deposit_requests?limit=5&offset=99")
    assert [99, 100, 101] == [item["request_index"] for item in data(page)]
    both = data(ask("/slot/100/consolidation_requests"))
    assert [(0, 7), (1, 7)] == [(item["source_index"], item["target_index"]) for item in both]
    assert 3 == len(data(ask("/validator/7/consolidation_requests")))
    assert [100] == [
        item["block_slot"] for item in data(ask("/validator/1/consolidation_requests"))
    ]
    assert 2 == len(data(ask("/slot/100/switch_to_compounding_requests")))
    (switch,) = data(ask("/validator/1,5/switch_to_compounding_requests"))
    assert (1, RICH) == (switch["validator_index"], switch["address"])


@pytest.mark.parametrize("path", REQUEST_PATHS)
def test_no_requests_are_an_empty_list(get, path):
    """E15: a slot or validator without requests, and an invalid one."""
    assert [] == data(get(path.format(102)))
    assert 400 == get(path.format("x")).status_code


@pytest.mark.parametrize("name", ["healthz", "healthz-loadbalancer"])
def test_health_checks_are_plain_text_without_a_key(dataset, name):
    """E15: the health checks are plain text, need no key, and have the words of the service."""
    with Server(dataset, wire="public", require_key=True) as server:
        answer = httpx.get(f"{server.url}/api/{name}")
        head = httpx.head(f"{server.url}/api/{name}")

    assert (200, "OK. Last epoch is from 0s ago") == (answer.status_code, answer.text)
    assert answer.headers["content-type"].startswith("text/plain")
    assert (200, "") == (head.status_code, head.text)
