"""Fields that the API promises: renamed, left out, or null.

Which fields those are follows from the specification and from answers of the real service.
"""

from __future__ import annotations

import json

import pytest

import beaconframes as bf
from beaconframes import v1, v2
from beaconframes.calendar import MAINNET
from beaconframes.errors import SchemaError
from beaconframes.schema import EnvelopeContext
from beaconframes.v1.address_balances import Account, AddressBalances, Holding
from beaconframes.v2.machine_metrics import MachineMetrics
from beaconframes.v2.queues import Queues

from ..support.replay import replaying
from ..support.whole_records import required_columns, whole

TABLES = {e.name: e.table for e in v1.ENDPOINTS} | {f"v2/{e.name}": e.table for e in v2.ENDPOINTS}
for special in ("v2/machine_names", "v2/queues", "v2/machine_metrics", "address_balances"):
    del TABLES[special]
TABLES |= {"account": Account, "holding": Holding}
CONTEXT = EnvelopeContext(
    {"range": b'{"epoch":{"start":1,"end":1},"slot":{"start":32,"end":63}}'},
    {
        "slot": {"number": 32},
        "epoch": 1,
        "entity": "Lido",
        **dict.fromkeys(("address", "domain", "eth1address", "validators"), "0xab"),
        "withdrawalCredentialsOrEth1address": "0xab",
    },
)
PUBKEY = "0x" + "00" * 48
INCOME = {
    "attestation_source_reward": 3371,
    "attestation_target_reward": 6261,
    "attestation_head_reward": 3226,
}


def decode(table, *records):
    """Return the frame of *records* as one page."""
    return TABLES[table].decode([json.dumps(records).encode()], MAINNET, [CONTEXT])


def income(epoch, **members):
    """Return an income record."""
    week = {"week": 253, "week_start": "2025-10-07T12:00:23Z", "week_end": "2025-10-14T12:00:23Z"}
    return {"income": members, "epoch": epoch, "validatorindex": 7} | week


def paths(table):
    """Return the first path of every required field of a table."""
    return [column.wire_paths[0].removesuffix("[]") for column in required_columns(TABLES[table])]


def replace(record, path, *pairs):
    """Return a copy of *record* with *pairs* instead of the member at *path*."""
    head, dot, rest = path.partition(".")
    copy = {name: value for name, value in record.items() if name != head}
    return copy | ({head: replace(record[head], rest, *pairs)} if dot else dict(pairs))


@pytest.mark.parametrize("name", ["attestation_head_rewards", "headReward"])
@pytest.mark.parametrize("at", [0, 1])
def test_a_renamed_amount_is_not_zero(name, at):
    """G5: a zero amount is left out, so that only the new name shows that one was renamed."""
    good = income(399000, attestation_source_reward=1)
    renamed = {name if k == "attestation_head_reward" else k: v for k, v in INCOME.items()}
    records = [good, income(399001, **renamed)]

    with pytest.raises(SchemaError) as refused:
        decode("income_history", *(records if at else records[::-1]))

    assert "income.attestation_head_reward" in str(refused.value).split(name)[0]
    assert f"income.{name}" in str(refused.value)


def test_zero_amounts_that_are_left_out_are_zero():
    """G5: that is how the service writes 0, also if no record of the page has the amount."""
    frame = decode("income_history", income(399000, **INCOME), income(399001))

    assert [3226, 0] == frame["attestation_head_reward_gwei"].to_list()
    assert [0, 0] == frame["sync_committee_reward_gwei"].to_list()
    assert [0, 0] == frame["tx_fee_reward_wei"].to_list()


@pytest.mark.parametrize("value", [3226, "3226"])
@pytest.mark.parametrize("name", ["attestation_head_reward", "proposals_missed"])
def test_a_null_amount_is_not_zero(name, value):
    """G5: in the fast decoder, and in the one that reads numbers as text."""
    one = income(399000, attestation_source_reward=value)

    with pytest.raises(SchemaError, match=f"row 1 has no income.{name}"):
        decode("income_history", one, income(399001, **{name: None}))


@pytest.mark.parametrize("value", [3226, "3226"])
def test_unknown_fees_are_null(value):
    """G5: a source without an execution node does not know the fees; they are not zero."""
    one = income(399000, attestation_source_reward=value)

    frame = decode("income_history", one, income(399001, tx_fee_reward_wei=None))

    assert [0, None] == frame["tx_fee_reward_wei"].to_list()


@pytest.mark.parametrize(
    ("table", "good", "bad"),
    [
        ("income_history", income(0, **INCOME), income(0, attestation_head_rewards=5)),
        (
            "balance_history",
            {"validatorindex": 7, "epoch": 0, "balance": 1, "effectivebalance": 1},
            {"validatorindex": 7, "epoch": 0, "balance": None, "effectivebalance": 1},
        ),
    ],
)
def test_a_refused_record_is_never_stored(table, good, bad, tmp_path):
    """G5, G6: the load fails and stores nothing; a later load asks again."""
    sent = iter((bad, good))
    state = {"currentEpoch": 9, "currentSlot": 300, "currentFinalizedEpoch": 7}
    replies = {
        "GET /api/v1/latestState": json.dumps(whole(TABLES["latest_state"], state)).encode(),
    }
    load = getattr(bf, f"load_{table}")

    with (
        replaying(replies) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000, store=tmp_path / "store") as explorer,
    ):
        replies["*"] = json.dumps({"status": "OK", "data": [next(sent)]}).encode()
        with pytest.raises(SchemaError):
            load(7, since=0, until=0, explorer=explorer)
        assert bf.store(explorer).tables().is_empty()
        replies["*"] = json.dumps({"status": "OK", "data": [next(sent)]}).encode()
        assert 1 == load(7, since=0, until=0, explorer=explorer).height
        assert 1 == bf.store(explorer).tables().height


@pytest.mark.parametrize("table", TABLES)
def test_a_promised_field_that_is_absent_or_null_is_refused(table):
    """G6: of every column of both versions that is not declared nullable."""
    record = whole(TABLES[table], {})

    for number, path in enumerate(paths(table)):
        null = [(path.rpartition(".")[2], None)] if number % 2 else []
        with pytest.raises(SchemaError) as refused:
            decode(table, record, replace(record, path, *null))
        assert f"row 1 has no {path}" in str(refused.value)


@pytest.mark.parametrize(
    ("table", "body"),
    [
        (Queues, {"exit_queue": {"count": 1, "balance": "1"}, "deposit_queue": {}}),
        (Queues, {"exit_queue": {"count": None, "balance": "1"}, "deposit_queue": None}),
        (MachineMetrics, {"system_metrics": [{"machine": "a"}]}),
        (AddressBalances, {"address": "0x" + "ab" * 20, "tokens": []}),
        (AddressBalances, {"ether": "1", "address": "0xab", "tokens": [{"balance": "1"}]}),
    ],
)
def test_an_incomplete_record_of_another_form_is_refused(table, body):
    """G6: in responses that are converted before they are decoded."""
    with pytest.raises(SchemaError, match=" has no "):
        table.decode([json.dumps(body).encode()], MAINNET)


@pytest.mark.parametrize(
    ("table", "names"),
    [
        ("validators", {"balance", "effective_balance", "status", "slashed", "pubkey"}),
        ("balance_history", {"balance", "effectivebalance"}),
        ("attestations", {"status", "attesterslot", "inclusionslot"}),
        # valid_signature is null where an own node's registry does not prove it.
        ("deposits", {"amount", "publickey", "signature", "withdrawal_credentials"}),
        ("slot_withdrawals", {"amount", "validatorindex", "address"}),
        ("validator_withdrawals", {"amount", "validatorindex", "slot", "epoch"}),
        ("execution_blocks", {"blockReward", "blockMevReward", "producerReward"}),
        ("yield_index", {"apr", "total_rewards_wei", "effective_balances_sum_wei"}),
        ("sync_committees", {"validators"}),
        ("v2/balances", {"balance.current", "balance.effective"}),
        ("v2/rewards", {"total_penalty", "attestation.head.reward", "sync_committee.reward"}),
        ("v2/slot_withdrawals", {"amount", "validator.public_key"}),
        ("v2/block_rewards", {"total_reward.amount", "priority_fees.amount"}),
    ],
)
def test_which_amounts_and_identifiers_are_required(table, names):
    """G6: the documented amounts are not declared nullable."""
    assert set() == names - set(paths(table))


@pytest.mark.parametrize("name", ["total", "total_missed", "proposal.execution_layer_reward"])
def test_an_unknown_sum_is_null_in_an_index_of_a_node_only(name):
    """G6: without an execution node, an index does not know what blocks paid."""
    columns = TABLES["v2/rewards"].columns
    record = {c.wire_paths[0]: "5" for c in columns if c.wire_paths and c.name.endswith("_wei")}
    nested = whole(TABLES["v2/rewards"], {"validator": {"index": 1, "public_key": PUBKEY}})
    for path, value in record.items():
        part = nested
        *parents, last = path.split(".")
        for parent in parents:
            part = part.setdefault(parent, {})
        part[last] = None if path == name else value
    page, local = json.dumps([nested]).encode(), {**CONTEXT.members, "dataset": b'"partial"'}

    with pytest.raises(SchemaError, match=f"has no {name}: it is left out, or null"):
        decode("v2/rewards", nested)
    context = EnvelopeContext(local, CONTEXT.fields)
    rows = TABLES["v2/rewards"].decode([page], MAINNET, [context])
    column = next(c for c in columns if c.wire_paths == (name,))
    assert [None] == rows[column.name].to_list()


@pytest.mark.parametrize("table", TABLES)
def test_a_record_without_its_key_is_refused(table):
    """G7: it does not become a row of nulls; tables without published fields need one field."""
    for record in [{}, {"epoch": 1}] if paths(table) else [{}]:
        with pytest.raises(SchemaError):
            decode(table, record)


@pytest.mark.parametrize("record", [{}, {"epoch": 1}])
def test_slot_withdrawals_of_v2_have_a_validator(record):
    """G7: the loader raises, and names what is missing."""
    body = json.dumps({"data": [record], "paging": {}}).encode()

    with (
        replaying({"*": body}) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000) as explorer,
        pytest.raises(SchemaError, match="slot_withdrawals"),
    ):
        bf.v2.load_slot_withdrawals(12_771_160, explorer=explorer)


def test_unknown_fields_beside_undocumented_ones_are_ignored():
    """G5: the shape of a V2 withdrawal is not published in full: more fields are expected."""
    record = {"validator": {"index": 7, "public_key": "0x" + "ab" * 48}, "amount": "5"}

    frame = decode("v2/slot_withdrawals", record | {"request_index": 3})

    assert [(7, 5, None)] == frame.select("validator_index", "amount_wei", "type").rows()
