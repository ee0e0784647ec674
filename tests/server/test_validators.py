"""Validators on the local explorer, requested with plain HTTP."""

from __future__ import annotations

import httpx
import polars as pl
import pytest

from beaconframes.server import Server

UNKNOWN_KEY = "0x" + "ab" * 48


@pytest.fixture(scope="module")
def get(chain):
    """A plain HTTP client of the local explorer."""
    with Server(chain) as server, httpx.Client(base_url=server.url) as client:
        yield client.get


def data(answer):
    assert 200 == answer.status_code, answer.text
    return answer.json()["data"]


def test_proposals_are_101_epochs_by_proposer_and_newest_first(get, chain):
    """The window is the epoch and the 100 epochs before it; missed proposals are included."""
    indices = ",".join(map(str, range(100)))
    records = data(get(f"/api/v1/validator/{indices}/proposals?epoch=300"))

    place = [(record["proposer"], -record["epoch"], -record["slot"]) for record in records]
    assert sorted(place) == place
    blocks = chain.scan("blocks").filter(
        pl.col("proposer_index") < 100, pl.col("epoch").is_between(200, 300)
    )
    assert sorted(blocks.collect()["slot"]) == sorted(record["slot"] for record in records)
    assert {"1", "2"} <= {record["status"] for record in records} <= {"0", "1", "2", "3"}
    assert {"withdrawalcount", "votes"}.isdisjoint(records[0])
    assert 36 == len(records[0])


def test_proposals_by_default_end_at_the_latest_epoch(get):
    """A later end is accepted and has no further rows."""
    indices = ",".join(map(str, range(100)))
    records = data(get(f"/api/v1/validator/{indices}/proposals"))

    assert all(369 <= record["epoch"] <= 469 for record in records)
    beyond = data(get(f"/api/v1/validator/{indices}/proposals?epoch=569"))
    assert [r for r in records if r["epoch"] == 469] == beyond


def test_attestations_by_default_are_the_last_hundred_epochs(get):
    """Rows are ordered by newest epoch, then by validator; the status is a number."""
    records = data(get("/api/v1/validator/9,8/attestations"))

    assert [(e, v) for e in range(469, 369, -1) for v in (8, 9)] == [
        (record["epoch"], record["validatorindex"]) for record in records
    ]
    assert {
        "attesterslot", "committeeindex", "epoch", "inclusionslot", "status", "validatorindex",
        "week", "week_start", "week_end",
    } == set(records[0])  # fmt: skip
    assert {record["status"] for record in records} <= {0, 1}
    assert all((record["inclusionslot"] > 0) == (record["status"] == 1) for record in records)
    assert all(record["attesterslot"] // 32 == record["epoch"] for record in records)


@pytest.mark.parametrize(("word", "fields"), [("true", 5), ("false", 9), ("1", 9), ("yes", 9)])
def test_slim_omits_fields(get, word, fields):
    """Week and committee are omitted for the value true only."""
    path = f"/api/v1/validator/9/attestations?startEpoch=400&endEpoch=401&slim={word}"
    records = data(get(path))

    assert [401, 400] == [record["epoch"] for record in records]
    assert fields == len(records[0])


def test_deposits_of_unknown_validators(get):
    """An unknown index or key is no error here."""
    assert [] == data(get("/api/v1/validator/999999/deposits"))
    assert [] == data(get(f"/api/v1/validator/{UNKNOWN_KEY}/deposits"))


def test_deposits_by_index_are_those_of_its_key(get, chain):
    """Always a list; amounts in gwei, times in Unix seconds, the fields of the specification."""
    key = chain.scan("validators").filter(validator_index=9).collect()["pubkey"][0]
    records = data(get("/api/v1/validator/9/deposits"))

    assert records == data(get(f"/api/v1/validator/{key}/deposits"))
    assert {
        "amount", "block_number", "block_ts", "from_address", "merkletree_index", "publickey",
        "removed", "signature", "tx_hash", "tx_index", "tx_input", "valid_signature",
        "withdrawal_credentials",
    } == set(records[0])  # fmt: skip
    assert {key} == {record["publickey"] for record in records}
    assert isinstance(records[0]["block_ts"], int)


def test_bls_changes_are_newest_first(get, chain):
    """All fields of the specification are present."""
    changed = chain.scan("bls_changes").sort("validator_index").collect()["validator_index"]
    indices = ",".join(map(str, changed[:100]))
    records = data(get(f"/api/v1/validator/{indices}/blsChange"))

    slots = [record["slot"] for record in records]
    assert sorted(slots, reverse=True) == slots
    assert sorted(changed[:100]) == sorted(record["validatorindex"] for record in records)
    assert {
        "epoch", "slot", "blockroot", "validatorindex", "bls_pubkey", "bls_signature", "address",
        "withdrawalcredentials_0x00", "withdrawalcredentials_0x01",
    } == set(records[0])  # fmt: skip
    for record in records:
        assert f"0x01{'00' * 11}{record['address'][2:]}" == record["withdrawalcredentials_0x01"]


def test_wei_and_gwei_are_whole_numbers(get):
    """No exponent and no fraction in the performances."""
    wei = get("/api/v1/validator/5,6/execution/performance")
    gwei = get("/api/v1/validator/5,6/performance")

    fields = {f"performance{days}" for days in ("1d", "7d", "31d", "365d")} | {"validatorindex"}
    assert fields | {"performanceTotal"} == set(data(wei)[0])
    more = {"performancetotal", "performancetoday", "rank7d", "balance"}
    assert fields | more == set(data(gwei)[0])
    assert not any(sign in wei.content + gwei.content for sign in (b".", b"e+"))


def test_the_leaderboard_is_no_validator(get):
    """A hundred entries by rank, although the path also matches that of a validator."""
    records = data(get("/api/v1/validator/leaderboard"))

    assert list(range(1, 101)) == [record["rank7d"] for record in records]
    assert {
        "balance", "performance1d", "performance7d", "performance31d", "performance365d",
        "performancetotal", "rank7d", "validatorindex",
    } == set(records[0])  # fmt: skip


def test_efficiency_is_between_one_and_two(get):
    """1 is best and 2 is worst."""
    records = data(get("/api/v1/validator/3,4,5/attestationefficiency"))

    assert {"validatorindex", "attestation_efficiency"} == set(records[0])
    assert all(1 <= record["attestation_efficiency"] <= 2 for record in records)


@pytest.mark.parametrize("epoch", ["", "?epoch=469", "?epoch=soon"])
def test_withdrawals_of_100_epochs_by_their_number(get, epoch):
    """An invalid epoch means the latest, as on the service."""
    indices = ",".join(map(str, range(100)))
    records = data(get(f"/api/v1/validator/{indices}/withdrawals{epoch}"))

    numbers = [record["withdrawalindex"] for record in records]
    assert sorted(numbers) == numbers
    assert numbers
    assert all(370 <= record["epoch"] <= 469 for record in records)
    assert {
        "epoch", "slot", "blockroot", "withdrawalindex", "validatorindex", "address", "amount",
    } == set(records[0])  # fmt: skip


def test_stats_by_default_are_all_days_newest_first(get):
    """An end after the running day is accepted; equal ends select one day."""
    days = [record["day"] for record in data(get("/api/v1/validator/stats/5"))]

    assert sorted(days, reverse=True) == days
    assert {0, 1} <= set(days)
    assert days == [r["day"] for r in data(get("/api/v1/validator/stats/5?end_day=99999"))]
    assert [1] == [r["day"] for r in data(get("/api/v1/validator/stats/5?start_day=1&end_day=1"))]
    assert [] == data(get("/api/v1/validator/stats/999999"))


def test_luck_is_one_object_for_the_set(get):
    """Keys and indices can be mixed; seconds are integers."""
    record = data(get("/api/v1/validators/proposalLuck?validators=1,2,3"))

    assert {
        "proposal_luck", "average_proposal_interval", "next_proposal_estimate_ts",
        "time_frame_name",
    } == set(record)  # fmt: skip
    assert 0 < record["average_proposal_interval"] < 1010
    assert isinstance(record["next_proposal_estimate_ts"], int)


def test_one_pool_validator_is_an_object(get, chain):
    """Several are a list; a validator outside the pool has no record."""
    members = chain.scan("pool_validators").sort("validator_index").collect()["validator_index"]
    outside = next(n for n in range(1010) if n not in set(members))
    path = "/api/v1/poolprotocol/validator"

    one = data(get(f"{path}/{members[0]},{outside}"))
    two = data(get(f"{path}/{members[1]},{members[0]}"))

    assert members[0] == one["index"]
    assert sorted(members[:2]) == sorted(record["index"] for record in two)
    assert [] == data(get(f"{path}/{outside}"))
    assert one == data(get(f"/api/v1/rocketpool/validator/{members[0]}"))
    assert 24 == len(one)
