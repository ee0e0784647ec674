"""E2: V2 paths whose shape is not published: their rows equal those of the chain from V1."""

from __future__ import annotations

from types import SimpleNamespace

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.answers.v2.duty_slots import find_known_range
from beaconframes.answers.v2.queues import derive_places
from beaconframes.endpoint import Head
from beaconframes.errors import NotServed

SET = range(0, 1010, 50)


def sort_rows(frame, *columns):
    """Return the rows of some columns, sorted."""
    return sorted(frame.select(columns).rows())


def test_attestation_slots_count_the_duties_of_v1(explorer):
    """The range says from which slot on the service has duties."""
    head = explorer.service.head
    epochs = {"since": 400, "until": 401}
    votes = bf.load_attestations(SET, **epochs)
    found = bf.v2.load_attestation_slots(SET, since=400 * 32, until=402 * 32 - 1)

    counts = votes.group_by("attester_slot").len().sort("attester_slot", descending=True)
    assert counts.rows() == found.select("slot", "validator_count").rows()
    stored = bf.v2.load_attestation_slots(3, since=11_000, until=11_850)
    last = bf.v2.load_attestation_slots(3, since=-96)
    assert (head.epoch - 100) * 32 == stored["first_slot"][0]
    assert 32 * (head.finalized_epoch + 1) - 1 == last["last_slot"][0]


def test_slots_of_deposits_and_withdrawals_have_their_sums(explorer):
    """Both are by slot and validator, newest first, up to the final slot."""
    scan = explorer.service.dataset.scan
    who = range(1000, 1010)
    keys = bf.load_validators(who).select("validator_index", "pubkey")
    deposits = scan("slot_deposits").collect().join(keys, on="pubkey")
    found = bf.v2.load_deposit_slots(who)
    paid = bf.load_validator_withdrawals(range(3), since=460, until=467)
    swept = bf.v2.load_withdrawal_slots(range(3), since=460 * 32, until=468 * 32 - 1)

    sums = deposits.group_by("block_slot", "validator_index").agg(
        pl.col("amount_gwei").sum().cast(pl.Int128) * 10**9, count=pl.len()
    )
    columns = ("slot", "validator_index", "amount_wei", "count")
    assert sorted(sums.rows()) == [tuple(map(int, row)) for row in sort_rows(found, *columns)]
    assert found["slot"].is_sorted(descending=True)
    expected = bf.to_wei(paid)
    assert 0 < paid.height
    assert sort_rows(expected, "slot", "validator_index", "amount_wei") == (
        sort_rows(swept, "slot", "validator_index", "amount_wei")
    )
    assert {"finalized"} == set(swept["finality"])


def test_upcoming_duties_are_those_of_the_rest_of_the_epoch(explorer):
    """Proposals of scheduled slots, attestations, and the slots of committee members."""
    scan, head = explorer.service.dataset.scan, explorer.service.head
    scheduled = scan("blocks").filter(pl.col("status") == "scheduled").collect()
    who = scheduled["proposer_index"].unique().to_list()[:3]
    found = bf.v2.load_upcoming_duty_slots(who)

    rows = {duty: found.filter(duty=duty) for duty in ("proposal", "attestation", "sync_committee")}
    mine = scheduled.filter(pl.col("proposer_index").is_in(who))
    assert sort_rows(mine, "slot", "proposer_index") == (
        sort_rows(rows["proposal"], "slot", "validator_index")
    )
    votes = bf.load_attestations(who, since=head.epoch, until=head.epoch)
    votes = votes.filter(pl.col("attester_slot") > head.slot)
    assert sort_rows(votes, "attester_slot", "validator_index") == (
        sort_rows(rows["attestation"], "slot", "validator_index")
    )
    members = bf.load_sync_committees("latest")["validator_index"].to_list()
    rest = 32 * (head.epoch + 1) - 1 - head.slot
    assert rest * len(set(members) & set(who)) == rows["sync_committee"].height
    assert (head.slot + 1, head.slot + rest) == found.select("first_slot", "last_slot").row(0)


def test_committees_of_validators_and_members_of_committees_agree_with_seats(explorer):
    """Each member once per period, with the number of its seats; an unknown period is not found."""
    seats = bf.load_sync_committees([1, 2])
    counts = sorted(seats.group_by("period", "validator_index").len().rows())

    members = bf.v2.load_sync_committee_validators([1, 2])
    some = members["validator_index"].unique().to_list()[:20]
    periods = bf.v2.load_sync_committee_periods(some)

    assert counts == sort_rows(members, "period", "validator_index", "seat_count")
    assert [row for row in counts if row[1] in some] == sort_rows(
        periods.filter(pl.col("period") > 0), "period", "validator_index", "seat_count"
    )
    assert (256, 511) == periods.filter(period=1).select("epoch_start", "epoch_end").row(0)
    assert (0, 767) == periods.select("first_epoch", "last_epoch").row(0)
    with pytest.raises(NotServed):
        bf.v2.load_sync_committee_validators(3)


def test_without_any_committee_the_requested_slots_were_searched():
    view = SimpleNamespace(
        scan=lambda _: pl.LazyFrame(schema=dict.fromkeys(["start_epoch", "end_epoch"], pl.Int64))
    )
    assert (64, 95) == find_known_range(view, 64, 95)


def test_a_stated_activation_is_no_estimate(chain):
    """The chain decides it some epochs ahead; before, the place in the queue is all that is known.

    That of the eligible validator without an epoch follows from the balances before its own.
    """
    rows = [("pending", 5, 12, None), ("pending", 6, None, None), ("exiting", 1, 2, 14)]
    validators = pl.DataFrame(
        [(n, *row) for n, row in enumerate(rows)],
        [
            "validator_index",
            "status",
            "activation_eligibility_epoch",
            "activation_epoch",
            "exit_epoch",
        ],
        orient="row",
    ).with_columns(slashed=False, effective_balance_gwei=32 * 10**9, withdrawable_epoch=None)
    tables = {
        "validators": validators,
        "epochs": pl.DataFrame({"epoch": [9], "eligible_ether_gwei": [10**15]}),
    }
    view = SimpleNamespace(
        scan=lambda name: tables[name].lazy(),
        head=Head(10, 8, 330),
        chain=bf.MAINNET,
        is_simulated=True,
    )

    places = derive_places(view).collect()

    assert {0: 12, 1: 16, 2: 14} == dict(places.select("validator_index", "epoch").iter_rows())


def test_places_in_queues_add_up_to_the_queues(explorer):
    """Count, amount and the last estimate of each queue; the epoch of an exit is its exit epoch."""
    queues = bf.v2.load_queues()
    status = explorer.service.dataset.scan("validators").collect()
    waiting = status.filter(~pl.col("status").str.contains("^(active|exited|slashed)"))
    found = bf.v2.load_validator_queues(waiting["validator_index"])

    for queue in ("deposit", "exit"):
        mine = found.filter(queue=queue)
        assert [*range(1, mine.height + 1)] == mine["position"].to_list()
        assert (
            mine.height,
            mine["amount_wei"].sum(),
            mine["estimated_processed_at_epoch"].max(),
            mine["estimated_processed_at_time"].max(),
        ) == queues.select(
            f"{queue}_count",
            f"{queue}_balance_wei",
            f"{queue}_processed_epoch",
            f"{queue}_processed_time",
        ).row(0)
    exits = found.filter(queue="exit").join(status, on="validator_index")
    assert exits["exit_epoch"].to_list() == exits["estimated_processed_at_epoch"].to_list()


def test_deposits_of_slots_equal_those_of_v1(explorer):
    """One row per deposit in the order of the block, also of one validator only."""
    slots = (
        explorer.service.dataset.scan("slot_deposits")
        .collect()["block_slot"]
        .unique()
        .to_list()[-3:]
    )
    expected = bf.to_wei(bf.load_slot_deposits(slots))

    found = bf.v2.load_slot_deposits(slots)
    one = bf.v2.load_slot_deposits(slots, found["pubkey"][0])

    assert expected.select(
        "block_slot", "block_index", "pubkey", "amount_wei", "withdrawal_credentials", "signature"
    ).rows() == (
        found.select(
            "slot",
            "index",
            "pubkey",
            "amount_wei",
            "withdrawal_credentials_credential",
            "signature",
        ).rows()
    )
    assert one.rows() == found.filter(pubkey=found["pubkey"][0]).rows()


@pytest.mark.parametrize("name", ["owners", pytest.param("operators", marks=pytest.mark.more)])
def test_owners_and_operators_are_searched_filtered_and_sorted(name, explorer):
    """Each has an id and a path, which select its validators; Unknown has neither."""
    load = getattr(bf.v2, f"load_{name}")
    other, party = ("operator", bf.v2.owner) if name == "owners" else ("owner", bf.v2.operator)
    found = load("24h")

    assert found["validator_count"].is_sorted(descending=True)
    assert found["net_share"].sum() == pytest.approx(1)
    unknown = found.filter(pl.col("path").is_null(), pl.col("id").is_null())
    assert ["Unknown"] == unknown["name"].to_list()
    row = found.row(by_predicate=pl.col("path") == "Fyrlykt", named=True)
    assert [row] == load("24h", search="fyrL", **{other: row["id"]}).to_dicts()
    for selector in (row["id"], row["path"]):
        assert row["validator_count"] == bf.v2.load_validators(party(selector)).height


@pytest.mark.more
def test_searches_and_filters_without_a_result_are_empty(explorer):
    """An unknown text, an unknown path, and two that exclude each other."""
    for wanted in ({"search": "nothing"}, {"operator": "nothing"}, {"operator": 10**6}):
        assert 0 == bf.v2.load_owners("24h", **wanted).height
    assert 0 == bf.v2.load_owners("24h", search="Fyrlykt", operator="Pharos Pool").height


def test_state_and_config_equal_those_of_v1_and_of_the_chain(explorer):
    """One row each."""
    state, config = bf.v2.load_state(), bf.v2.load_config()
    expected, chain = bf.load_latest_state(), explorer.service.chain

    assert expected.select(
        "current_slot", "time", "current_epoch", "current_finalized_epoch", "last_proposed_slot",
        "finality_delay", "syncing",
    ).rows() == state.select(
        "latest_slot", "latest_time", "latest_epoch", "finalized_epoch", "last_proposed_slot",
        "finality_delay", "syncing",
    ).rows()  # fmt: skip
    # A client of the public service reads these two.
    assert expected.select("current_slot", "current_epoch").rows() == (
        state.select("current_slot", "current_epoch").rows()
    )
    assert 32 * (state["finalized_epoch"][0] + 1) - 1 == state["finalized_slot"][0]
    assert {
        "chain": chain.name,
        "genesis_time": chain.genesis,
        "seconds_per_slot": 12,
        "slots_per_epoch": 32,
        "epochs_per_sync_committee_period": 256,
        "sync_committee_size": 512,
        "altair_fork_epoch": 0,
    } == {name: config[name][0] for name in sorted(config.columns)}
