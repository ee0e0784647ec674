"""Recorded V2 responses, replayed and compared field by field.

The recordings are not part of the project; the tests are skipped without them.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest

import beaconframes as bf
from beaconframes import errors

from ..support.recorded_files import RECORDED
from ..support.replay import replaying


def index():
    """Return the index entries of V2, by file name."""
    if not (RECORDED / "index.json").exists():
        return {}
    known = json.loads((RECORDED / "index.json").read_text())
    return {e["file"]: e for e in known if e["file"].startswith("v2-")}


INDEX = index()
pytestmark = pytest.mark.skipif(not INDEX, reason=f"no recorded answers in {RECORDED}")

# Written by hand: the column of each field of a record.
OVERVIEW = {
    "validator.index": "validator_index",
    "validator.public_key": "pubkey",
    "slashed": "slashed",
    "status": "status",
    "online": "online",
    "withdrawal_credentials.type": "withdrawal_type",
    "withdrawal_credentials.prefix": "withdrawal_prefix",
    "withdrawal_credentials.credential": "withdrawal_credentials",
    "withdrawal_credentials.address": "withdrawal_address",
    "life_cycle_epochs.activation_eligibility": "activation_eligibility_epoch",
    "life_cycle_epochs.activation": "activation_epoch",
    "life_cycle_epochs.exit": "exit_epoch",
    "life_cycle_epochs.withdrawable": "withdrawable_epoch",
    "balances.current": "balance_wei",
    "balances.effective": "effective_balance_wei",
    "finality": "finality",
}
VALIDATORS = sorted(f for f in INDEX if f.startswith("v2-validators--") and "error" not in f)


def leaves(record, prefix=""):
    """Every field of a record that is not an object, by its path."""
    for name, value in record.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def cell(name, value):
    """The cell of a field in the column *name*."""
    if value is None:
        return None
    if name.endswith("_wei"):
        return Decimal(value)
    return value.lower() if isinstance(value, str) and value.startswith("0x") else value


def documented(file):
    """Whether a file is an example with placeholders instead of amounts."""
    return INDEX[file]["kind"].startswith("docs example")


@pytest.mark.parametrize("file", [f for f in VALIDATORS if not documented(f)])
def test_every_field_of_a_validator_is_in_the_frame(file):
    """Amounts, epochs, lower-case addresses; the request is the recorded one with its page."""
    found = json.loads((RECORDED / file).read_bytes())
    body = json.loads(INDEX[file]["request_body"])

    with (
        replaying({"*": (RECORDED / file).read_bytes()}) as server,
        bf.Explorer(server.url, chain=body["chain"], rate=1000) as explorer,
    ):
        named = body["validator"]["validator_identifiers"]
        frame = bf.v2.load_validators(named, explorer=explorer)

    paged = {"cursor": "", "page_size": 10}
    assert [body | paged] == [json.loads(sent) for sent in server.posted]
    expected = [
        {OVERVIEW[path]: cell(OVERVIEW[path], value) for path, value in leaves(record)}
        | {"epoch": found["range"]["epoch"]["end"]}
        for record in sorted(found["data"], key=lambda record: record["validator"]["index"])
    ]
    assert expected == [{name: row[name] for name in expected[0]} for row in frame.rows(named=True)]
    assert set(frame.columns) == set(expected[0])


REWARDS = "v2-validators-rewards-list--1.json"


@pytest.mark.skipif(REWARDS not in INDEX, reason="not recorded")
def test_every_amount_of_a_reward_is_in_the_frame():
    """Each part, to the last wei; a missing part is null."""
    found = json.loads((RECORDED / REWARDS).read_bytes())

    with (
        replaying({"*": (RECORDED / REWARDS).read_bytes()}) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000) as explorer,
    ):
        frame = bf.v2.load_rewards(1, since=347_566, until=347_566, explorer=explorer)

    (row,) = frame.rows(named=True)
    (record,) = found["data"]
    amounts = {
        path.replace(".", "_").replace("missed_reward", "missed"): Decimal(value)
        for path, value in leaves(record)
        if isinstance(value, str) and value.lstrip("-").isdigit()
    }
    assert 29 == len(amounts)
    assert amounts == {name: row[f"{name}_wei"] for name in amounts}
    assert None is row["attestation_inclusion_delay_total_wei"]
    assert datetime.fromtimestamp(found["range"]["timestamp"]["start"], UTC) == row["time"]
    assert (1, 347_566, "finalized") == (row["validator_index"], row["epoch"], row["finality"])


@pytest.mark.parametrize("file", sorted(f for f in INDEX if "--error" in f))
def test_a_recorded_refusal_raises_its_error(file):
    """Too many identifiers, and too many requests."""
    status, body = INDEX[file]["status"], (RECORDED / file).read_bytes()
    kinds = {403: errors.TooManyIdentifiers, 429: errors.RateLimited}

    with (
        replaying({"*": (status, {"Retry-After": "3600"}, body)}) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000) as explorer,
        pytest.raises(kinds[status]) as caught,
    ):
        bf.v2.load_validators(1, explorer=explorer)

    assert 1 == len(server.posted)
    if status == 403:
        assert "allowed limit of 20" in str(caught.value)


MAINNET_GENESIS = 1_606_824_023
CHAIN = [f for f in INDEX if f.startswith("v2-validators-proposal-slots--")]


@pytest.mark.skipif(not CHAIN, reason="not recorded")
def test_the_recorded_pages_load_completely():
    """Seven pages, each requested once, all of the same time span."""
    bodies = {file: json.loads(INDEX[file]["request_body"]) for file in CHAIN}
    pages = {file: json.loads((RECORDED / file).read_bytes()) for file in CHAIN}
    ends = []

    def recorded(body):
        # The recorded request had no range; the rest is equal.
        ends.append(body.pop("range")["timestamp"])
        (file,) = [file for file in CHAIN if bodies[file] == body]
        return (RECORDED / file).read_bytes()

    with (
        replaying({f"POST {INDEX[CHAIN[0]]['path']}": recorded}) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000) as explorer,
    ):
        frame = bf.v2.load_proposal_slots([45_555, 54_333], explorer=explorer)

    expected = sorted(
        (
            r["slot"],
            r["validator"]["index"],
            r["validator"]["public_key"],
            r["block"],
            r["finality"],
        )
        for page in pages.values()
        for r in page["data"]
    )
    assert 62 == len(expected)
    assert expected == frame.drop("time").rows()
    assert len(CHAIN) == len(server.posted)
    assert [MAINNET_GENESIS] == sorted({end["start"] for end in ends})
    assert 1 == len({end["end"] for end in ends})
    assert [page["paging"].get("next_cursor") or "" for page in pages.values()][:-1] == [
        json.loads(sent)["cursor"] for sent in server.posted
    ][1:]


# Written by hand, as above.
BLOCK = {
    "block": "block_number",
    "hash": "block_hash",
    "timestamp": "time",
    "consensus_reference.slot": "slot",
    "consensus_reference.epoch": "epoch",
    "consensus_reference.block_root": "block_root",
    "parent_hash": "parent_hash",
    "receipts_root": "receipts_root",
    "state_root": "state_root",
    "transaction.gas.used": "gas_used",
    "transaction.gas.limit": "gas_limit",
    "transaction.gas.base_fee": "base_fee_per_gas_wei",
    "transaction.gas.fees_burned": "fees_burned_wei",
    "transaction.count.normal": "transactions_count",
    "transaction.count.blob": "blob_transactions_count",
    "transaction.count.internal": "internal_transactions_count",
    "blob.gas.used": "blob_gas_used",
    "blob.gas.excess": "blob_gas_excess",
    "extra_data": "extra_data",
    "finality": "finality",
}
BLOCK_REWARDS = {
    "execution_reference.block": "block_number",
    "execution_reference.hash": "block_hash",
    "consensus_reference.slot": "slot",
    "consensus_reference.epoch": "epoch",
    "consensus_reference.block_root": "block_root",
    "total_reward.amount": "total_reward_wei",
    "total_reward.recipient.address": "total_reward_recipient",
    "total_reward.recipient.is_contract": "total_reward_is_contract",
    "priority_fees.amount": "priority_fees_wei",
    "priority_fees.recipient.address": "priority_fees_recipient",
    "priority_fees.recipient.is_contract": "priority_fees_is_contract",
    "mev.amount": "mev_wei",
    "mev.recipient.address": "mev_recipient",
    "mev.recipient.is_contract": "mev_is_contract",
    "finality": "finality",
}
PARTS_OF_BLOCKS = {"mining", "mev", "blob"}
BLOCKS = sorted(f for f in INDEX if f.startswith("v2-block-") and not documented(f))


@pytest.mark.parametrize("file", BLOCKS)
def test_every_field_of_a_block_is_in_the_frame(file):
    """Fields of the block and its rewards; a missing field is null."""
    rewards = file.startswith("v2-block-rewards-")
    where, load = (
        (BLOCK_REWARDS, bf.v2.load_block_rewards) if rewards else (BLOCK, bf.v2.load_block)
    )
    record = json.loads((RECORDED / file).read_bytes())["data"]
    body = json.loads(INDEX[file]["request_body"])

    with (
        replaying({"*": (RECORDED / file).read_bytes()}) as server,
        bf.Explorer(server.url, chain=body["chain"], rate=1000) as explorer,
    ):
        frame = load(body["block"]["number"], explorer=explorer)

    (row,) = frame.rows(named=True)
    fields = {path: value for path, value in leaves(record) if path not in PARTS_OF_BLOCKS}
    expected = {where[path]: cell(where[path], value) for path, value in fields.items()}
    if not rewards:
        expected["time"] = datetime.fromtimestamp(record["timestamp"], UTC)
    assert [body] == [json.loads(sent) for sent in server.posted]
    assert expected == {name: row[name] for name in expected}
    assert {None} == {row[name] for name in set(row) - set(expected)}
