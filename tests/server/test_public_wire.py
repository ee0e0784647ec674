"""The public wire of the local explorer: paths, shapes and errors of the public service."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import httpx
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from starlette.responses import PlainTextResponse

import beaconframes as bf
from beaconframes.endpoint import Role
from beaconframes.server import Server
from beaconframes.server.access import Access, Limits
from beaconframes.server.limits import RateLimitMiddleware
from beaconframes.v1 import ENDPOINTS

BLOCK = {
    "attestationscount", "attesterslashingscount", "proposerslashingscount", "depositscount",
    "voluntaryexitscount", "withdrawalcount", "blockroot", "parentroot", "stateroot", "epoch",
    "slot", "proposer", "eth1data_blockhash", "eth1data_depositroot", "eth1data_depositcount",
    "exec_base_fee_per_gas", "exec_gas_limit", "exec_gas_used", "exec_block_number",
    "exec_transactions_count", "exec_timestamp", "exec_block_hash", "exec_parent_hash",
    "exec_random", "exec_receipts_root", "exec_state_root", "exec_extra_data", "exec_logs_bloom",
    "exec_fee_recipient", "graffiti", "graffiti_text", "randaoreveal", "signature",
    "syncaggregate_bits", "syncaggregate_signature", "syncaggregate_participation", "status",
}  # fmt: skip

ERRORS = [
    ("/api/v1/validators/proposalLuck", "no validators provided"),
    ("/api/v1/epoch/470", "epoch is in the future. The latest epoch is 469"),
    ("/api/v1/epoch/-1", "epoch must be a positive number"),
    ("/api/v1/epoch/newest", "invalid epoch provided"),
    ("/api/v1/epoch/1.5/slots", "invalid epoch provided"),
    ("/api/v1/sync_committee/finalized", "invalid epoch provided"),
    ("/api/v1/yieldindex/today", "invalid day provided"),
    ("/api/v1/ethstore/1.5", "invalid day provided"),
    ("/api/v1/slot/latest/attesterslashings", "invalid block slot provided"),
    ("/api/v1/slot/latest/proposerslashings", "invalid block slot provided"),
    ("/api/v1/slot/latest/voluntaryexits", "invalid block slot provided"),
    ("/api/v1/slot/latest/withdrawals", "invalid block slot provided"),
    ("/api/v1/slot/latest/deposits", "invalid block slot provided"),
    ("/api/v1/slot/x/withdrawals", "invalid block slot provided"),
    ("/api/v1/slot/x/attestations", "invalid block slot provided"),
    ("/api/v1/slot/-1/attestations", "slot must be a positive number"),
    ("/api/v1/slot/x", "could not parse slot number"),
    ("/api/v1/slot/99999999", "could not retrieve db results"),
    ("/api/v1/validator/1/proposals?epoch=abc",
     'strconv.ParseUint: parsing "abc": invalid syntax'),
    ("/api/v1/validator/1/balancehistory?limit=0", "invalid limit parameter"),
    ("/api/v1/validator/1/attestations?endEpoch=470", "invalid end epoch parameter"),
    ("/api/v1/execution/block/x", "invalid block number"),
    ("/api/v1/ens/lookup/ab.eth", "failed to resolve ens"),
    ("/api/v1/graffitiwall?startx=10&endx=9", "invalid area provided by the coordinates"),
    ("/api/v1/chart/nothing", "no data available for the requested chart"),
]  # fmt: skip

NOTHING = [
    "/api/v1/validator/999999",
    "/api/v1/sync_committee/99999",
    "/api/v1/yieldindex/99999",
    "/api/v1/ethstore/-1",
    "/api/v1/slot/99999999/withdrawals",
    "/api/v1/slot/-1/attesterslashings",
    f"/api/v1/slot/0x{'00' * 32}",
]


HALF = {"since": 205, "until": 310}
CALLS = {
    "validators": lambda pick: {"validators": [*range(120), 999_999]},
    "income_history": lambda pick: {"validators": range(20), **HALF},
    "balance_history": lambda pick: {"validators": range(20), **HALF},
    "proposals": lambda pick: {"validators": range(110), **HALF},
    "bls_changes": lambda pick: {"validators": range(1010)},
    "validator_withdrawals": lambda pick: {"validators": range(110), **HALF},
    "proposal_luck": lambda pick: {"validators": range(10)},
    "validator_stats": lambda pick: {"validators": [0, 7]},
    "deposit_origin": lambda pick: {"address": pick("deposit_origin", "from_address")},
    "withdrawal_credentials": lambda pick: {
        "credentials": pick("withdrawal_credentials", "credentials")
    },
    "epochs": lambda pick: {"since": 460},
    "epoch_slots": lambda pick: {"since": 460},
    "slots": lambda pick: {"slots": [*range(1000, 1010), pick("blocks", "block_root")[7]]},
    "sync_committees": lambda pick: {"periods": [0, 1, "latest"]},
    "execution_blocks": lambda pick: {"blocks": [*pick("execution_blocks", "block_number"), 10**9]},
    "produced_blocks": lambda pick: {
        "producers": [5, pick("execution_blocks", "relay_producer_fee_recipient")[0]]
    },
    "address_balances": lambda pick: {
        "addresses": [*pick("address_balances", "address"), f"0x{'99' * 20}"], "token": None
    },
    "token_balances": lambda pick: {"address": pick("token_balances", "address")},
    "names": lambda pick: {"names": [*pick("names", "requested"), f"0x{'99' * 20}"]},
    "graffiti_wall": lambda pick: {"since": 0, "region": (0, 0, 700, 700)},
    "yield_index": lambda pick: {"since": 0, "until": 1},
    "pool_validators": lambda pick: {"validators": range(250)},
}  # fmt: skip
"""Calls that `choose_call` cannot derive from the declaration, or that test more."""


def choose_call(name, pick):
    """Return a call whose result has rows: by default, of the first subjects or units."""
    if name in CALLS:
        return CALLS[name](pick)
    (endpoint,) = (endpoint for endpoint in ENDPOINTS if endpoint.name == name)
    call = {}
    for parameter in endpoint.parameters_of(Role.SUBJECT, Role.UNITS):
        (argument,) = parameter.arguments()
        if argument == "validators":
            call[argument] = range(110)
        elif parameter.rows_column is not None:
            call[argument] = pick(endpoint.table.table_name, parameter.rows_column.name)
        else:
            pytest.fail(f"rows of {name} have no column for {argument}: add a call to CALLS")
    return call


@pytest.fixture(scope="module")
def spec(chain):
    """The same chain on the wire of the specification."""
    with Server(chain) as server:
        yield server


@pytest.fixture(scope="module")
def opened(chain):
    """The same chain without a server."""
    with bf.open(chain) as explorer:
        yield explorer


@pytest.fixture(scope="module")
def get(public):
    """A plain HTTP client of the public wire."""
    with httpx.Client(base_url=public.url) as client:
        yield client.get


@pytest.mark.parametrize(("path", "message"), ERRORS)
def test_errors_have_the_messages_of_the_public_service(get, path, message):
    """All have status 400, in the envelope."""
    answer = get(path)

    assert (400, {"status": f"ERROR: {message}", "data": None}) == (
        answer.status_code,
        answer.json(),
    )


def test_a_future_slot_is_an_error_only_for_attestations(get, chain):
    """Attestations are an error that names the latest slot; other lists are empty."""
    latest = chain.meta["latest_slot"]

    refused = get(f"/api/v1/slot/{latest + 1}/attestations")

    assert 400 == refused.status_code
    expected = f"ERROR: slot is in the future. The latest slot is {latest}"
    assert expected == refused.json()["status"]
    assert [] == get(f"/api/v1/slot/{latest + 1}/deposits").json()["data"]


@pytest.mark.parametrize("path", NOTHING)
def test_unknown_objects_are_an_empty_list(get, path):
    """The status is 200, never 404."""
    answer = get(path)

    assert (200, {"status": "OK", "data": []}) == (answer.status_code, answer.json())


def test_the_state_has_no_envelope(get):
    """The answer is the record itself."""
    state = get("/api/v1/latestState").json()

    assert {
        "lastProposedSlot", "currentSlot", "currentEpoch", "currentFinalizedEpoch",
        "finalityDelay", "syncing", "rates",
    } == set(state)  # fmt: skip
    assert (469, 467) == (state["currentEpoch"], state["currentFinalizedEpoch"])


def test_validators_have_names_without_underscores(get):
    """One validator is an object, several are a list by index."""
    one = get("/api/v1/validator/7").json()["data"]
    two = get("/api/v1/validator/8,7").json()["data"]

    assert {
        "activationeligibilityepoch", "activationepoch", "exitepoch", "withdrawableepoch",
        "balance", "effectivebalance", "lastattestationslot", "name", "pubkey", "slashed",
        "status", "validatorindex", "withdrawalcredentials", "total_withdrawals",
    } == set(one)  # fmt: skip
    assert [7, 8] == [record["validatorindex"] for record in two]


def test_missing_epochs_are_the_far_future_epoch(get, chain):
    """The wire has 2**63 - 1 where the frame has null."""
    staying = chain.scan("validators").filter(pl.col("exit_epoch").is_null()).first().collect()
    index = staying["validator_index"][0]

    assert 9223372036854775807 == get(f"/api/v1/validator/{index}").json()["data"]["exitepoch"]


def test_zero_income_is_omitted(get, chain):
    """Fields of income that are 0 are absent; the others have the sum of the dataset."""
    records = get("/api/v1/validator/9,8/incomedetailhistory").json()["data"]

    assert 200 == len(records)
    assert {"income", "epoch", "validatorindex", "week", "week_start", "week_end"} == set(
        records[0]
    )
    assert not any(value in (0, "0") for r in records for value in r["income"].values())
    assert all(isinstance(r["income"].get("tx_fee_reward_wei", ""), str) for r in records)
    income = chain.scan("income_history").filter(
        pl.col("validator_index").is_in([8, 9]), pl.col("epoch").is_between(368, 467)
    )
    for field in ("attestation_target_reward", "attestation_target_penalty", "proposals_missed"):
        name = field if field == "proposals_missed" else f"{field}_gwei"
        expected = income.select(pl.col(name).sum()).collect().item()
        assert expected == sum(record["income"].get(field, 0) for record in records)


def test_slots_without_a_block_have_a_placeholder(get, chain):
    """The root is 0x01 for a missed slot, the status is text, the fields are the service's."""
    epoch = chain.scan("blocks").filter(status="missed").select("epoch").first().collect().item()
    records = get(f"/api/v1/epoch/{epoch}/slots").json()["data"]
    same = get(f"/api/v1/epoch/{epoch}/blocks").json()["data"]

    assert same == records
    assert all(set(record) == BLOCK for record in records)
    assert {"1", "2"} <= {record["status"] for record in records}
    assert {"0x01"} == {r["blockroot"] for r in records if r["status"] == "2"}
    assert all(len(r["blockroot"]) == 66 for r in records if r["status"] in "13")


def test_proposals_of_an_early_epoch(get):
    """P18: the public service replaces an epoch below 100 by 100: the window is 0 to 100."""
    every = ",".join(map(str, range(100)))
    early, first, later = (
        get(f"/api/v1/validator/{every}/proposals?epoch={epoch}").json()["data"]
        for epoch in (50, 100, 101)
    )

    assert first == early != later
    assert {record["epoch"] for record in early} <= set(range(101))
    assert min(record["epoch"] for record in early) == 0


def test_proposals_are_blocks_without_two_fields(get, chain):
    """Proposals are ordered by proposer, newest first; missed ones have the placeholder."""
    missed = chain.scan("blocks").filter(status="missed").last().collect()
    index, epoch = missed["proposer_index"][0], missed["epoch"][0]

    records = get(f"/api/v1/validator/{index}/proposals?epoch={epoch}").json()["data"]

    assert all(set(record) == BLOCK - {"withdrawalcount"} for record in records)
    assert (missed["slot"][0], "2", "0x01") == (
        records[0]["slot"], records[0]["status"], records[0]["blockroot"]
    )  # fmt: skip


@pytest.mark.parametrize("path", ["/api/v1/yieldindex/latest", "/api/v1/ethstore/latest"])
def test_a_day_of_the_yield_index_is_an_object(get, path):
    """The public service has an object where the specification has a list."""
    assert 1 == get(path).json()["data"]["day"]


def test_an_epoch_and_a_committee_are_objects(get):
    """The seats of a committee are a list of 512."""
    assert 467 == get("/api/v1/epoch/finalized").json()["data"]["epoch"]
    assert 512 == len(get("/api/v1/sync_committee/0").json()["data"]["validators"])


def test_answers_are_compressed_on_request(get):
    """Answers are compressed with gzip if the request accepts it."""
    path = "/api/v1/sync_committee/0"
    plain = get(path, headers={"accept-encoding": "identity"})
    packed = get(path, headers={"accept-encoding": "gzip"})

    assert "content-encoding" not in plain.headers
    assert "gzip" == packed.headers["content-encoding"]
    assert plain.json() == packed.json()


def test_order_of_the_wall(get):
    """Pixels are ordered by x and y, and then newest first."""
    for more in ("", "&summarize=false"):
        found = get(f"/api/v1/graffitiwall?startSlot=0{more}").json()["data"]
        places = [(pixel["x"], pixel["y"], -pixel["slot"]) for pixel in found]
        assert sorted(places) == places


def test_the_wall_is_summarized_by_default(get):
    """By default each pixel occurs once, with its newest color."""
    pixels = get("/api/v1/graffitiwall?startSlot=0").json()["data"]
    every = get("/api/v1/graffitiwall?startSlot=0&summarize=false").json()["data"]

    places = [(pixel["x"], pixel["y"]) for pixel in pixels]
    assert len(places) == len(set(places)) < len(every)
    newest = {(p["x"], p["y"]): p["slot"] for p in sorted(every, key=lambda p: p["slot"])}
    assert newest == {(p["x"], p["y"]): p["slot"] for p in pixels}


@pytest.mark.parametrize("server", ["spec", "public"])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/api/v1/yieldindex/0", "/api/v1/ethstore/0"),
        ("/api/v1/poolprotocol/stats", "/api/v1/rocketpool/stats"),
        ("/api/v1/poolprotocol/validator/1", "/api/v1/rocketpool/validator/1"),
        ("/api/v1/execution/gasfees", "/api/v1/execution/gasnow"),
    ],
)
def test_both_spellings_of_a_path_are_served(request, get, server, one, other):
    """Both paths have the same answer, on either wire."""
    url = request.getfixturevalue(server).url

    found = get(url + one)

    assert 404 != found.status_code
    assert found.content == get(url + other).content


def test_rate_limit_headers(get):
    """Every answer has them, errors included; minute and day repeat hour and month."""
    for path in ("/api/v1/latestState", "/api/v1/epoch/x", "/api/v1/nothing"):
        headers = get(path).headers

        assert "second" == headers["ratelimit-window"]
        assert ("1", "default", "false") == (
            headers["ratelimit-reset"],
            headers["ratelimit-bucket"],
            headers["ratelimit-validapikey"],
        )
        assert int(headers["ratelimit-remaining"]) < int(headers["ratelimit-limit"])
        assert "retry-after" not in headers
        for what in ("limit", "remaining"):
            values = {unit: headers[f"x-ratelimit-{what}-{unit}"] for unit in
                    ("second", "minute", "hour", "day", "month")}  # fmt: skip
            assert headers[f"ratelimit-{what}"] == values["second"]
            assert (values["hour"], values["month"]) == (values["minute"], values["day"])


def test_no_rate_limit_headers_by_default(spec):
    """The wire of the specification sends none without a rate."""
    headers = httpx.get(f"{spec.url}/api/v1/latestState").headers

    assert not [name for name in headers if "ratelimit" in name]


@pytest.mark.usefixtures("endless_second")
@pytest.mark.parametrize("wire", ["spec", "public"])
def test_too_many_requests(chain, wire):
    """The answer is 429 with the seconds to wait; only the public wire has plain text (E12)."""
    with Server(chain, wire=wire, rate=3) as server, httpx.Client(base_url=server.url) as client:
        answers = [client.get("/api/v1/latestState") for _ in range(5)]

    assert [200] * 3 + [429] * 2 == [answer.status_code for answer in answers]
    assert ["2", "1", "0", "0", "0"] == [a.headers["ratelimit-remaining"] for a in answers]
    refused = answers[-1]
    if wire == "public":
        assert b"Too Many Requests\n" == refused.content
        assert "text/plain; charset=utf-8" == refused.headers["content-type"]
    else:
        message = "ERROR: Rate limit exceeded. Please try again later."
        assert {"status": message, "data": None} == refused.json()
    assert "nosniff" == refused.headers["x-content-type-options"]
    assert ("1", "1", "second", "3") == tuple(
        refused.headers[name]
        for name in ("retry-after", "ratelimit-reset", "ratelimit-window", "ratelimit-limit")
    )
    assert 3 == server.requests


@pytest.mark.usefixtures("endless_second")
def test_requests_with_a_key_are_counted_separately(chain):
    """The headers state whether the key is valid; requests without a key use another bucket."""
    with Server(chain, wire="public", rate=1) as server:
        url = f"{server.url}/api/v1/epoch/1"
        found = [httpx.get(url, headers=h) for h in ({}, {}, {"apikey": "k"}, {"apikey": "k"})]

    assert [200, 429, 200, 429] == [answer.status_code for answer in found]
    assert ["false"] * 2 + ["true"] * 2 == [a.headers["ratelimit-validapikey"] for a in found]


def test_loaders_obey_the_rate_of_the_headers(chain):
    """The client learns the permitted rate from the headers, so that no request is refused."""
    with (
        Server(chain, wire="public", rate=5) as server,
        bf.Explorer(server.url, chain=server.service.chain) as explorer,
    ):
        frame = bf.load_epochs(since=0, until=8, explorer=explorer)

        assert 9 == frame.height
        # Nine epochs, and the head, because the chain is not a public one.
        assert 9 + 1 == explorer.requests == server.requests


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_connection_close_is_answered(public, method):
    """A request with Connection: close has an answer with the same header."""
    answer = httpx.request(
        method,
        f"{public.url}/api/v1/validator" + ("/1" if method == "GET" else ""),
        headers={"Connection": "close"},
        **({} if method == "GET" else {"json": {"indicesOrPubkey": "1"}}),
    )

    assert (200, "close") == (answer.status_code, answer.headers["connection"])


@pytest.mark.parametrize("bad", [{"wire": "Public"}, {"rate": 0}])
def test_invalid_arguments_of_a_server(chain, bad):
    """An invalid wire or rate is a UsageError that names the value."""
    with pytest.raises(bf.errors.UsageError, match=str(next(iter(bad.values())))):
        Server(chain, **bad)


@pytest.fixture
def pick(chain):
    """Return the first few values of a column of the dataset."""

    def values(table, column):
        return chain.scan(table).select(pl.col(column).drop_nulls()).collect().to_series().unique(
            maintain_order=True
        )[:12].to_list()  # fmt: skip

    return values


@pytest.mark.filterwarnings("ignore::beaconframes.MissingRows")
@pytest.mark.parametrize("name", [endpoint.name for endpoint in ENDPOINTS])
def test_loaders_give_the_same_frames_on_either_wire(spec, public, opened, pick, name):
    """S15: every loader has rows, with the same values and order, without a server too."""
    load = getattr(bf, f"load_{name}")
    frames = [load(**choose_call(name, pick), explorer=opened)]
    for server in (spec, public):
        with bf.Explorer(
            server.url, chain=server.service.chain, head=server.service.head
        ) as explorer:
            frames.append(load(**choose_call(name, pick), explorer=explorer))

    assert frames[0].height > 0, f"add a call of load_{name} to CALLS whose result has rows"
    for frame in frames[1:]:
        assert_frame_equal(frames[0], frame)


def test_charts_are_the_same_on_either_wire(spec, public):
    """The wire makes no difference to the charts."""
    found = [httpx.get(f"{server.url}/api/v1/chart/blocks").content for server in (spec, public)]

    assert found[0] == found[1]


def test_bls_changes_with_an_unknown_key(get, spec, chain, pick):
    """The specification refuses any unknown key; the public service does if all are unknown."""
    changed = pick("bls_changes", "validator_index")[0]
    key = chain.scan("validators").filter(validator_index=changed).collect()["pubkey"][0]
    unknown = "0x" + "ab" * 48
    mixed, alone = f"/api/v1/validator/{unknown},{key}/blsChange", f"/validator/{unknown}/blsChange"

    assert [changed] == [record["validatorindex"] for record in get(mixed).json()["data"]]
    assert 400 == httpx.get(spec.url + mixed).status_code
    assert "did not resolve" in get(f"/api/v1{alone}").json()["status"]
    hundred_and_one = ",".join([unknown] * 101)
    assert (
        "maximum of 100" in get(f"/api/v1/validator/{hundred_and_one}/blsChange").json()["status"]
    )


@pytest.mark.parametrize(
    ("path", "table", "column"),
    [
        ("validator/{}", "validators", "validator_index"),
        ("rocketpool/validator/{}", "pool_validators", "validator_index"),
    ],
)
def test_one_row_is_an_object_and_several_are_a_list(get, pick, path, table, column):
    """This holds for lists of validators, on the public wire as in the specification."""
    one, two, *_ = pick(table, column)

    assert isinstance(get(f"/api/v1/{path.format(one)}").json()["data"], dict)
    assert isinstance(get(f"/api/v1/{path.format(f'{one},{two}')}").json()["data"], list)


def test_a_deposit_alone_is_an_object(get, chain):
    """Several deposits of a transaction are a list."""
    counts = chain.scan("deposits").group_by("tx_hash").len().collect()
    kinds = {
        count: type(get(f"/api/v1/eth1deposit/{tx_hash}").json()["data"])
        for tx_hash, count in counts.sort("len").unique("len", keep="first").rows()
    }

    assert dict in kinds.values()
    assert {count: dict if count == 1 else list for count in kinds} == kinds


def test_a_withdrawal_alone_is_an_object(get, chain):
    """Several withdrawals of a slot are a list."""
    counts = chain.scan("slot_withdrawals").group_by("block_slot").len().collect()
    kinds = {
        count: type(get(f"/api/v1/slot/{slot}/withdrawals").json()["data"])
        for slot, count in counts.unique("len", keep="first").rows()
    }

    assert {count: dict if count == 1 else list for count in kinds} == kinds


@pytest.mark.parametrize(
    "path",
    [
        "validator/1/deposits", "validator/1/performance", "validator/1/attestations",
        "validator/1/attestationeffectiveness", "validator/stats/1", "validator/leaderboard",
        "execution/1/produced", "epoch/1/slots", "epoch/1/blocks", "graffitiwall",
        "validator/withdrawalCredentials/{credentials}",
    ],
)  # fmt: skip
def test_other_lists_stay_lists(get, pick, path):
    """One row is a list, too."""
    path = path.format(credentials=pick("withdrawal_credentials", "credentials")[0])

    assert isinstance(get(f"/api/v1/{path}").json()["data"], list)


@pytest.mark.parametrize("path", ["validators/queue", "rocketpool/stats", "block/40", "slot/40"])
def test_readings_and_blocks_are_objects(get, path):
    """This holds for both paths."""
    assert isinstance(get(f"/api/v1/{path}").json()["data"], dict)


def test_gas_fees_have_a_code_instead_of_a_status(get):
    """The code is the number 200, and times are in milliseconds."""
    answer = get("/api/v1/execution/gasnow").json()

    assert (200, {"code", "data"}) == (answer["code"], set(answer))
    assert {"rapid", "fast", "standard", "slow", "timestamp", "price", "priceUSD"} == set(
        answer["data"]
    )
    assert answer["data"]["timestamp"] > 10**12


def test_deposit_origins_have_names_without_underscores(get, pick):
    """Public key and index are spelled without underscores."""
    address = pick("deposit_origin", "from_address")[0]

    records = get(f"/api/v1/validator/eth1/{address}").json()["data"]

    assert {"publickey", "validatorindex", "valid_signature"} == set(records[0])


def test_no_tokens_are_null(get):
    """An address without transactions has no name and no tokens."""
    data = get(f"/api/v1/execution/address/0x{'99' * 20}").json()["data"]

    assert {"address": "0x", "ether": "0", "tokens": None} == data


def test_an_execution_block_has_both_inner_objects(get, pick, chain):
    """The relay object is null for a block without a relay."""
    without = chain.scan("execution_blocks").filter(pl.col("relay_tag").is_null()).first()
    number = without.collect()["block_number"][0]

    (record,) = get(f"/api/v1/execution/block/{number}").json()["data"]

    assert record["relay"] is None
    assert {"executionBlockNumber", "proposerIndex", "slot", "epoch", "finalized"} == set(
        record["posConsensus"]
    )
    assert isinstance(record["blockReward"], int)


def send_requests(application, count):
    """Return the answers of an ASGI application to *count* requests."""

    async def send():
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://local") as client:
            return [await client.get("/") for _ in range(count)]

    return asyncio.run(send())


def test_hours_and_months_are_those_of_the_calendar():
    """The exhausted window decides the answer, which states its remaining seconds."""
    now = [datetime(2026, 1, 15, 10, 30, tzinfo=UTC).timestamp()]
    limited = RateLimitMiddleware(
        PlainTextResponse("ok"),
        access=Access(limits={"nokey": Limits(second=10, hour=2, month=3)}),
        clock=lambda: now[0],
    )

    first, second, third = send_requests(limited, 3)

    assert [200, 200, 429] == [first.status_code, second.status_code, third.status_code]
    assert "second" == second.headers["ratelimit-window"]
    assert ("hour", "2", "0", "1800", "1800") == tuple(
        third.headers[name]
        for name in ("ratelimit-window", "ratelimit-limit", "ratelimit-remaining",
                     "ratelimit-reset", "retry-after")
    )  # fmt: skip
    now[0] += 1800
    fourth, fifth = send_requests(limited, 2)
    assert [200, 429] == [fourth.status_code, fifth.status_code]
    until_february = datetime(2026, 2, 1, tzinfo=UTC).timestamp() - now[0]
    assert ("month", str(int(until_february))) == (
        fifth.headers["ratelimit-window"],
        fifth.headers["retry-after"],
    )
    now[0] += until_february
    assert [200] == [answer.status_code for answer in send_requests(limited, 1)]


@pytest.mark.parametrize("status", [500, 503])
def test_failed_requests_are_not_counted(status):
    """A 5xx counts for the second, but not for the hour or the month."""
    limited = RateLimitMiddleware(
        PlainTextResponse("broken", status),
        access=Access(limits={"nokey": Limits(second=9, hour=2)}),
        clock=lambda: 0,
    )

    answers = send_requests(limited, 4)

    assert [status] * 4 == [answer.status_code for answer in answers]
    assert ["1"] * 4 == [answer.headers["x-ratelimit-remaining-hour"] for answer in answers]
    assert ["8", "7", "6", "5"] == [a.headers["ratelimit-remaining"] for a in answers]
