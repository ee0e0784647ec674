"""V2 of the local explorer: rows, tiers, cursors and errors."""

from __future__ import annotations

import httpx
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import errors
from beaconframes.server import Server

from ..support.validator_sets import list_validator_sets

FREE, PREMIUM = "free-key-0123456789", "premium-key-0123456789"
GWEI = 10**9
SLOT = {"chain": "mainnet", "slot": {"number": 5000}}
PATH = "/api/v2/ethereum/slot/withdrawals"
EXECUTION = "proposal_execution_layer_reward_wei"


@pytest.mark.parametrize("form", ["epoch", "slot"])
def test_a_range_in_the_far_future_is_refused(explorer, form):
    """Its slots have no time."""
    far = {"chain": "mainnet", "range": {form: {"start": 10**13, "end": 10**13}}}
    answer = httpx.post(f"{explorer.url}/api/v2/ethereum/eth-store", json=far)
    assert 400 == answer.status_code


@pytest.fixture(scope="module")
def server_with_keys(chain):
    """A local explorer with one key of each tier."""
    with Server(chain, keys={FREE: "free", PREMIUM: "premium"}) as server:
        yield server


def post(server, path, body, key=PREMIUM):
    """Return the answer to a POST request."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    with httpx.Client(base_url=server.url) as client:
        return client.post(path, json=body, headers=headers)


def connect(server, key):
    """Return an explorer with an API key."""
    return bf.Explorer(server.url, api_key=key, chain=server.service.chain, rate=1000)


BAD = "Bad request. Please check your input and try again."


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (PATH, {**SLOT, "page_size": 11}),
        (PATH, {**SLOT, "page_size": 0}),
        (PATH, {**SLOT, "page_size": "10"}),
        (PATH, {**SLOT, "cursor": 5}),
        (PATH, {**SLOT, "cursor": "never-given"}),
        (PATH, {**SLOT, "chain": "sepolia"}),
        (PATH, {**SLOT, "slot": {"number": 5, "view": "latest"}}),
        (PATH, {**SLOT, "slot": 5000}),
        (PATH, {**SLOT, "slot": {"number": -1}}),
        (PATH, {**SLOT, "slot": {"view": "newest"}}),
        (PATH, {**SLOT, "type_filter": ["sweep"]}),
        (PATH, {**SLOT, "validator": {}}),
        (PATH, {**SLOT, "validator": {"validator_identifiers": []}}),
        (PATH, {**SLOT, "validator": {"validator_identifiers": [1], "dashboard_id": 1}}),
        (PATH, {**SLOT, "validator": {"validator_identifiers": [True]}}),
        (PATH, [SLOT]),
        ("/api/v2/ethereum/validators", {"chain": "mainnet"}),
        (
            "/api/v2/ethereum/validators/rewards-list",
            {"chain": "mainnet", "validator": {"dashboard_id": 1}, "epoch": "latest"},
        ),
        (
            "/api/v2/ethereum/validators/rewards-aggregate",
            {"validator": {"dashboard_id": 1}, "range": {"evaluation_window": "31d"}},
        ),
    ],
)
def test_bad_requests_have_the_message_of_the_specification(server_with_keys, path, body):
    """All have status 400."""
    reply = post(server_with_keys, path, body)

    assert (400, {"error": BAD}) == (reply.status_code, reply.json())


@pytest.mark.parametrize(
    "body",
    [
        {**SLOT, "slot": {"number": 10**7}},
        {**SLOT, "slot": {"root": "0x" + "ab" * 32}},
        {**SLOT, "chain": "hoodi"},
        {**SLOT, "validator": {"dashboard_id": 0}},
    ],
)
def test_unknown_objects_are_not_found(server_with_keys, body):
    """A future slot, an unknown root, another chain, an unknown dashboard."""
    reply = post(server_with_keys, PATH, body)

    expected = {"error": "The requested resource was not found."}
    assert (404, expected) == (reply.status_code, reply.json())


@pytest.mark.parametrize("key", [None, "", "wrong-key"])
def test_requests_without_a_valid_key_are_unauthorized(server_with_keys, key):
    """The key must be a bearer token in the header."""
    reply = post(server_with_keys, PATH, SLOT, key)
    elsewhere = httpx.post(
        f"{server_with_keys.url}{PATH}?apikey={PREMIUM}", json=SLOT, headers={"apikey": PREMIUM}
    )

    expected = {"error": "Unauthorized. Please provide a valid API key."}
    for answer in (reply, elsewhere):
        assert (401, expected) == (answer.status_code, answer.json())


@pytest.mark.parametrize("scheme", ["bearer", "BEARER"])
def test_the_scheme_of_the_key_has_any_case(server_with_keys, scheme):
    """HTTP compares names of schemes without case; a key has one case only."""

    def ask(key):
        return httpx.post(
            f"{server_with_keys.url}/api/v2/ethereum/config",
            json={"chain": "mainnet"},
            headers={"Authorization": f"{scheme} {key}"},
        ).status_code

    assert (200, 401) == (ask(PREMIUM), ask(PREMIUM.upper()))


def test_a_range_ends_with_the_last_second_of_its_last_slot(running):
    """Epoch 300 has the slots 9600 to 9631, of twelve seconds each."""
    body = {"chain": "mainnet", "validator": {"validator_identifiers": [1]}, "epoch": 300}
    genesis = int(running.service.chain.genesis.timestamp())

    found = post(running, "/api/v2/ethereum/validators/balances", body).json()["range"]

    assert {
        "slot": {"start": 9600, "end": 9631},
        "epoch": {"start": 300, "end": 300},
        "timestamp": {"start": genesis + 300 * 384, "end": genesis + 301 * 384 - 1},
    } == found


@pytest.mark.parametrize(
    ("start", "end", "slots"),
    [
        (0, 0, [0]),
        (0, 11, [0]),
        (0, 12, [0, 1]),
        (-11, 0, [0]),
        (-12, 23, [-1, 0, 1]),
        (1, 11, []),
        (1, 12, [1]),
    ],
)
@pytest.mark.parametrize("is_last", [False, True])
def test_a_range_of_time_has_the_slots_that_start_in_it(running, start, end, slots, is_last):
    """Seconds count from the start of a slot; after the last finalized slot there are no rows."""
    service = running.service
    last = service.head.finalized_epoch * 32 + 31
    slot = last if is_last else last - 50
    time = int(service.chain.time_of("slot", slot).timestamp())
    blocks = service.views.dataset.scan("blocks").filter(pl.col("slot").is_between(slot - 1, last))
    proposers = blocks.select("proposer_index").unique().collect().to_series().to_list()
    body = {"chain": "mainnet", "validator": {"validator_identifiers": proposers}}
    body["range"] = {"timestamp": {"start": time + start, "end": time + end}}

    found = post(running, "/api/v2/ethereum/validators/proposal-slots", body).json()["data"]

    expected = [slot + offset for offset in slots if slot + offset <= last]
    assert expected == sorted(row["slot"] for row in found)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_every_other_method_is_not_allowed(server_with_keys, method):
    """The message names the method."""
    reply = httpx.request(method, server_with_keys.url + PATH)

    expected = {"error": f"method not allowed: {method}. all public API endpoints use POST."}
    assert (405, expected) == (reply.status_code, reply.json())


def test_an_unknown_path_is_not_found(server_with_keys):
    """The error is that of V2."""
    reply = post(server_with_keys, "/api/v2/ethereum/nothing", {})

    assert 404 == reply.status_code
    assert {"error": "The requested resource was not found."} == reply.json()


def test_invalid_json_is_a_bad_request(server_with_keys):
    """Half an object, and a body that is too large."""
    for body in (b"{", b"", b" " * (2 << 20)):
        headers = {"Authorization": f"Bearer {PREMIUM}"}
        reply = httpx.post(server_with_keys.url + PATH, content=body, headers=headers)

        assert (400, {"error": BAD}) == (reply.status_code, reply.json())


@pytest.mark.parametrize("kind", ["attestation", "sync-committee"])
@pytest.mark.parametrize("slot", [{"view": "latest"}, {"root": "0x" + "ab" * 32}, None])
def test_duties_take_the_number_of_a_slot_only(server_with_keys, kind, slot):
    """E13: the slot is required, and neither a root nor a view, which other endpoints accept."""
    body = {"chain": "mainnet"} | ({} if slot is None else {"slot": slot})
    reply = post(server_with_keys, f"/api/v2/ethereum/slot/{kind}-duties", body)

    assert (400, {"error": BAD}) == (reply.status_code, reply.json())


def test_duties_that_are_not_final_are_404_with_the_text_of_the_service(server_with_keys):
    """Blocks that follow may still include the attestation: it is not missed yet."""
    head, clock = server_with_keys.service.head, server_with_keys.service.chain
    last = clock.last_slot_of(head.finalized_epoch)
    for number in (last + 1, head.slot, head.slot + 1):
        body = {"chain": "mainnet", "slot": {"number": number}}
        reply = post(server_with_keys, "/api/v2/ethereum/slot/attestation-duties", body)
        text = f"requested slot {number} is greater than latest finalized slot {last}"
        assert (404, {"error": text}) == (reply.status_code, reply.json())
    body = {"chain": "mainnet", "slot": {"number": last}}
    reply = post(server_with_keys, "/api/v2/ethereum/slot/attestation-duties", body)
    assert {"finalized"} == {row["finality"] for row in reply.json()["data"]}


@pytest.mark.usefixtures("endless_second")
def test_too_many_requests_have_a_json_body(chain):
    """V1 has plain text."""
    with Server(chain, rate=1) as server:
        replies = [post(server, PATH, SLOT) for _ in range(2)]

    assert 429 == replies[1].status_code
    assert {"error": "Rate limit exceeded. Please try again later."} == replies[1].json()


def test_a_cursor_belongs_to_one_request(server_with_keys):
    """Another slot or filter is refused; another page size is permitted."""
    first = post(server_with_keys, PATH, {**SLOT, "page_size": 3}).json()
    cursor = first["paging"]["next_cursor"]

    assert (
        200 == post(server_with_keys, PATH, {**SLOT, "cursor": cursor, "page_size": 5}).status_code
    )
    for other in ({"slot": {"number": 5001}}, {"type_filter": ["manual"]}):
        assert 400 == post(server_with_keys, PATH, {**SLOT, **other, "cursor": cursor}).status_code


@pytest.mark.parametrize(
    "premium",
    [
        bf.v2.withdrawal("0x" + "ab" * 20),
        bf.v2.deposit_address("0x" + "ab" * 20),
        bf.v2.entity("Fyrlykt"),
        bf.v2.owner("Fyrlykt"),
    ],
)
def test_premium_parameters_with_a_free_key(server_with_keys, premium):
    """The error names the tier but not the key; a premium key has an answer."""
    with connect(server_with_keys, FREE) as free, pytest.raises(errors.TierTooLow) as caught:
        bf.v2.load_validators(premium, explorer=free)
    with connect(server_with_keys, PREMIUM) as larger:
        bf.v2.load_validators(premium, explorer=larger)

    assert "subscription tier" in str(caught.value)
    assert FREE not in str(caught.value)


def test_a_free_key_permits_twenty_validators(server_with_keys):
    """The loader splits its requests, and the rows are the same."""
    with connect(server_with_keys, FREE) as free, connect(server_with_keys, PREMIUM) as larger:
        few = bf.v2.load_validators(range(60), explorer=free)
        many = bf.v2.load_validators(range(60), explorer=larger)

    assert_frame_equal(many, few)
    assert 1 + 3 * 2 == free.requests


@pytest.mark.parametrize("which", range(10))
def test_each_way_to_name_validators_selects_them(which, chain, explorer):
    """By index, key, dashboard, address, credentials, entity and owner, as in the dataset."""
    named, expected = list_validator_sets(chain)[which]

    found = bf.v2.load_validators(named)

    assert expected == found["validator_index"].to_list()


def test_rewards_equal_the_income_of_v1(explorer):
    """Wei against gwei, part by part, over some epochs and validators; fees are compared below."""
    rewards = bf.v2.load_rewards(range(40), since=-3)
    income = bf.load_income_history(range(40), since=-3)

    expected = bf.to_wei(income)
    assert_frame_equal(expected["validator_index", "epoch"], rewards["validator_index", "epoch"])
    for theirs, ours in {
        "attestation_head_reward_wei": "attestation_head_reward_wei",
        "attestation_source_penalty_wei": "attestation_source_penalty_wei",
        "sync_committee_reward_wei": "sync_committee_reward_wei",
    }.items():
        assert expected[theirs].to_list() == rewards[ours].to_list()
    expected = expected.with_columns(tx_fee_reward_wei=rewards[EXECUTION])
    parts = [name for name in expected.columns if name.endswith("_reward_wei")]
    penalties = [name for name in expected.columns if name.endswith("_penalty_wei")]
    total = expected.select(pl.sum_horizontal(*parts) - pl.sum_horizontal(*penalties)).to_series()
    assert total.to_list() == rewards["total_wei"].to_list()
    assert rewards["total_wei"].to_list() == [
        reward - penalty
        for reward, penalty in rewards.select("total_reward_wei", "total_penalty_wei").rows()
    ]


def test_every_endpoint_reports_the_same_execution_reward(chain, explorer):
    """M2: the builder's payment, or the fees of a block without a builder, in V1 and V2."""
    blocks = chain.scan("execution_blocks").filter(pl.col("finalized")).collect()
    relayed = pl.col("relay_tag").is_not_null()
    sample = pl.concat([blocks.filter(relayed).tail(2), blocks.filter(~relayed).tail(2)])
    who = sample["proposer_index"].unique().sort().to_list()
    since, until = sample["epoch"].min(), sample["epoch"].max()

    first = bf.load_execution_blocks(sample["block_number"])
    second = bf.v2.load_block_rewards(sample["block_number"])
    produced = bf.load_produced_blocks(who)
    income = bf.load_income_history(who, since=since, until=until)
    rewards = bf.v2.load_rewards(who, since=since, until=until)

    # What the proposer received: the relay's payment where there is one, else the fees.
    assert first.select("block_number", wei="producer_reward_wei").rows() == (
        second.select("block_number", wei="total_reward_wei").rows()
    )
    paid = first.select(pl.when(relayed).then("block_mev_reward_wei").otherwise("block_reward_wei"))
    assert paid.to_series().to_list() == first["producer_reward_wei"].to_list()
    assert first["block_reward_wei"].to_list() != first["producer_reward_wei"].to_list()
    received = sum_by_epoch(produced.filter(pl.col("epoch").is_between(since, until)))
    fees = sum_by_epoch(produced, "block_reward_wei")
    for index, epoch, wei in rewards.select("validator_index", "epoch", EXECUTION).rows():
        assert received.get((index, epoch), 0) == wei
    for index, epoch, wei in income.select("validator_index", "epoch", "tx_fee_reward_wei").rows():
        assert fees.get((index, epoch), 0) == wei
    assert len(received) >= 4
    whole = bf.load_execution_performance(who)["performance_total_wei"]
    assert produced["producer_reward_wei"].sum() == whole.sum()
    last_day = bf.v2.load_rewards_aggregate(who, "24h")
    days = produced.filter(
        pl.col("epoch").is_between(last_day["first_epoch"][0], last_day["last_epoch"][0])
    )
    assert days["producer_reward_wei"].sum() == last_day[EXECUTION][0]


def sum_by_epoch(blocks, amount="producer_reward_wei"):
    """The amounts of blocks by proposer and epoch."""
    sums = blocks.group_by("proposer_index", "epoch").agg(pl.col(amount).sum())
    return {(index, epoch): wei for index, epoch, wei in sums.rows()}


@pytest.mark.more
def test_an_aggregate_is_the_sum_of_its_epochs(explorer):
    """A day of a set of validators equals the sum of its epochs, and of its parts."""
    whole = bf.v2.load_rewards_aggregate(range(101), "24h")
    first, last = whole["first_epoch"][0], whole["last_epoch"][0]
    income = bf.to_wei(bf.load_income_history(range(101), since=first, until=last))

    assert 225 == last - first + 1
    assert explorer.service.head.finalized_epoch == last
    assert (
        income["attestation_target_reward_wei"].sum() == (whole["attestation_target_reward_wei"][0])
    )
    blocks = bf.load_produced_blocks(range(101)).filter(pl.col("epoch").is_between(first, last))
    assert blocks["producer_reward_wei"].sum() == whole[EXECUTION][0]
    parts = pl.concat(
        [bf.v2.load_rewards_aggregate(half, "24h") for half in (range(50), range(50, 101))]
    )
    assert parts["total_wei"].sum() == whole["total_wei"][0]


@pytest.mark.more
def test_withdrawals_of_slots_equal_those_of_v1(explorer):
    """V09: validator, amount, time and address agree over thirty slots."""
    slots = range(5000, 5030)
    first = bf.to_wei(bf.load_slot_withdrawals(slots))
    second = bf.v2.load_slot_withdrawals(slots)

    columns = {"block_slot": "slot", "address": "withdrawal_address"}
    expected = first.rename(columns).select(
        "slot", "time", "validator_index", "withdrawal_address", "amount_wei"
    )
    found = second.select(expected.columns)
    assert_frame_equal(
        expected.sort("slot", "validator_index"), found.sort("slot", "validator_index")
    )
    assert {"partial_sweep"} >= set(second["type"]) - {"full_exit_sweep"}


@pytest.mark.parametrize(
    "types", [None, [], "partial_sweep", ["full_exit_sweep", "manual"], ["manual"]]
)
def test_type_filter(types, explorer):
    """No type means all types."""
    whole = bf.v2.load_slot_withdrawals(range(14_000, 14_004))
    filtered = bf.v2.load_slot_withdrawals(range(14_000, 14_004), type_filter=types)

    wanted = [types] if isinstance(types, str) else types or set(whole["type"])
    assert_frame_equal(whole.filter(pl.col("type").is_in(list(wanted))), filtered)


def test_the_latest_slot_is_one_slot(explorer):
    """P15: the head is known, so that it takes no further request."""
    before = explorer.requests

    latest = bf.v2.load_slot_withdrawals("latest")

    assert [explorer.service.head.slot] == latest["slot"].unique().to_list()
    assert 2 == explorer.requests - before


def test_validators_equal_those_of_v1(explorer):
    """Balances are in wei; the statuses are those of the Beacon API."""
    first = bf.to_wei(bf.load_validators(range(800, 1010)))
    second = bf.v2.load_validators(range(800, 1010))

    same = [name for name in first.columns if name in second.columns and name != "status"]
    assert "withdrawable_epoch" in same
    assert_frame_equal(first.select(same), second.select(same))
    active = first["status"].str.starts_with("active_")
    assert (second["status"] == "active_ongoing").to_list() == active.to_list()
    assert (
        second["online"].null_count()
        == first.filter(~pl.col("status").str.contains("line$")).height
    )


def test_old_queues(chain, hoodi, explorer):
    """With the switch, `queues` has the shape that existing clients read; loaders read both."""
    new = bf.v2.load_queues().row(0, named=True)
    with Server(chain, old_queues=True) as server:
        found = post(server, "/api/v2/ethereum/queues", {"chain": "mainnet"}).json()
        document = httpx.get(f"{server.url}/openapi.json").json()
        with connect(server, None) as client:
            loaded = bf.v2.load_queues(explorer=client).row(0, named=True)
    last_swept = (
        chain.scan("slot_withdrawals")
        .join(
            chain.scan("manual_withdrawal_events"),
            left_on=["block_slot", "validator_index"],
            right_on=["slot", "validator_index"],
            how="anti",
        )
        .sort("withdrawal_index")
        .collect()["validator_index"][-1]
    )
    # Of 1,010 validators, sixteen in each block.
    delay = found["data"]["withdrawal_sweep"].pop("estimated_sweep_delay")

    assert {
        "data": {
            "deposit_queue": {
                "churn": "128000000000000000000",
                "deposit_count": new["deposit_count"] + new["topup_count"],
                "balance": str(new["deposit_balance_wei"] + new["topup_balance_wei"]),
                "estimated_processed_at": int(new["deposit_processed_time"].timestamp()),
            },
            "exit_queue": {
                "churn": "128000000000000000000",
                "count": new["exit_count"],
                "balance": str(new["exit_balance_wei"]),
                "estimated_processed_at": int(new["exit_processed_time"].timestamp()),
            },
            "withdrawal_sweep": {"last_swept_validator_index": last_swept},
            "finality": "not_finalized",
        }
    } == found
    assert 12 * 50 < delay <= 12 * 64
    with Server(hoodi, old_queues=True) as server:
        small = post(server, "/api/v2/ethereum/queues", {"chain": "hoodi"}).json()["data"]
    # 60 validators need four blocks of sixteen.
    assert 12 * 4 == small["withdrawal_sweep"]["estimated_sweep_delay"]
    assert new["exit_count"] == loaded["exit_count"] > 0
    assert (last_swept, delay) == (loaded["sweep_last_index"], loaded["sweep_delay_seconds"])
    assert (
        "withdrawal_sweep" in document["components"]["schemas"]["V2OldQueuesRecord"]["properties"]
    )
