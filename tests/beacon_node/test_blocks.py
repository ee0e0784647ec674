"""Tables from blocks, compared with other routes of the same node and with expected values."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import replace
from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beaconframes.beacon_node.chain.votes import read_votes
from beaconframes.beacon_node.client.slot_blocks import (
    check_links,
    check_state,
    read_orphan,
    read_slots,
)
from beaconframes.beacon_node.tables.attestations import build_slot_attestations
from beaconframes.beacon_node.tables.blocks import decode_graffiti
from beaconframes.consensus.block_root import compute_block_root
from beaconframes.errors import ResponseError
from beaconframes.v1 import ENDPOINTS, _blocks, graffiti_wall

from ..support.beacon_states import load_states
from ..support.node_tables import build_block_tables
from ..support.recorded_blocks import load_blocks

CHAINS = ("altair", "capella", "electra")
COUNTS = [name for name in _blocks.Blocks.schema() if name.endswith("_count")]


@pytest.fixture(params=CHAINS)
def chain(request):
    return load_blocks(request.param)


@pytest.fixture(scope="module")
def tables():
    return {name: build_block_tables(load_blocks(name).spec, load_blocks(name).slots)
            for name in CHAINS}  # fmt: skip


def rows(frame, *columns):
    return [list(row) for row in frame.select(columns).rows()]


def test_blocks_equal_the_headers_of_the_same_node(chain):
    """The root of a block is the parent root of the next; no header is requested for it."""
    blocks = build_block_tables(chain.spec, chain.slots)["blocks"].filter(status="proposed")
    assert list(chain.headers) == blocks["slot"].to_list()
    for row in blocks.iter_rows(named=True):
        header = chain.headers[row["slot"]]
        message = header["header"]["message"]
        proposer = int(message["proposer_index"]) if row["slot"] else None
        assert (header["root"], header["header"]["signature"]) == (
            row["block_root"],
            row["signature"],
        )
        assert (message["parent_root"], message["state_root"], proposer) == (
            row["parent_root"],
            row["state_root"],
            row["proposer_index"],
        )


def test_missed_slots_have_the_proposer_of_the_duty(chain, tables):
    missed = tables[chain.recording.name]["blocks"].filter(status="missed")
    if chain.recording.name == "altair":
        assert missed["slot"].to_list() == sorted(chain.answers.keys() - chain.headers.keys())
        return
    key = "missed" if chain.recording.name == "capella" else "missed_slots"
    assert chain.expected[key] == rows(missed, "slot", "proposer_index")


def test_a_missed_slot_has_the_values_of_the_service(tables):
    """The service sends 0 for counts and participation, "" as text, and no root."""
    row = tables["electra"]["blocks"].filter(slot=14).row(0, named=True)
    expected = dict.fromkeys(_blocks.Blocks.schema()) | dict.fromkeys(COUNTS, 0)
    expected |= {
        "slot": 14,
        "epoch": 1,
        "status": "missed",
        "proposer_index": 17,
        "graffiti_text": "",
        "sync_aggregate_participation": 0.0,
        "time": datetime(2025, 10, 9, 8, 54, 44, tzinfo=UTC),
    }
    assert expected == row


def test_proposers_equal_the_expected_ones(tables):
    expected = load_blocks("electra").expected["proposers"]
    assert [None, *expected[1:]] == tables["electra"]["blocks"]["proposer_index"].to_list()
    by_epoch = load_blocks("capella").expected["proposers"]
    expected = [index for epoch in by_epoch.values() for index in epoch]
    assert [None, *expected[1:]] == tables["capella"]["blocks"]["proposer_index"].to_list()


def test_execution_columns_equal_the_execution_client(tables):
    """Before the Merge (slot 19), the payload is empty: there is no execution block."""
    chain, blocks = load_blocks("capella"), tables["capella"]["blocks"]
    before = blocks.filter(pl.col("slot") < 19)
    columns = [name for name in before.columns if name.startswith("exec_")]
    columns.remove("exec_transactions_count")
    assert all(before[name].null_count() == before.height for name in columns)
    assert before["exec_transactions_count"].sum() == 0
    executed = {}
    for (method, _), text in chain.recording.rpc.items():
        result = json.loads(text)["result"]
        if method == "eth_getBlockByNumber" and result:
            executed[int(result["number"], 16)] = result
    after = blocks.filter(pl.col("exec_block_number").is_not_null())
    assert after.height > 300
    for row in after.iter_rows(named=True):
        block = executed[row["exec_block_number"]]
        for column, field in {
            "exec_block_hash": "hash",
            "exec_parent_hash": "parentHash",
            "exec_fee_recipient": "miner",
            "exec_state_root": "stateRoot",
            "exec_receipts_root": "receiptsRoot",
            "exec_logs_bloom": "logsBloom",
            "exec_random": "mixHash",
        }.items():
            assert block[field].lower() == row[column], (column, row["slot"])
        for column, field in {
            "exec_gas_limit": "gasLimit",
            "exec_gas_used": "gasUsed",
            "exec_base_fee_per_gas_wei": "baseFeePerGas",
        }.items():
            assert int(block[field], 16) == row[column], (column, row["slot"])
        seconds = int(block["timestamp"], 16)
        assert datetime.fromtimestamp(seconds, UTC) == row["exec_time"] == row["time"]
        assert len(block["transactions"]) == row["exec_transactions_count"]
        assert row["exec_extra_data"] == (
            block["extraData"] if block["extraData"] != "0x" else None
        )


def test_participation_is_the_share_of_sync_committee_bits(tables):
    """The first block of epoch 17 of the Electra chain has no sync bit at all."""
    electra = tables["electra"]["blocks"].filter(pl.col("block_root").is_not_null())
    for row in electra.iter_rows(named=True):
        bits = int(row["sync_aggregate_bits"], 16).bit_count()
        assert bits / 32 == row["sync_aggregate_participation"]
    silent = electra.filter(pl.col("epoch") == 17, pl.col("sync_aggregate_participation") == 0)
    assert silent.height == 1


def test_withdrawals_equal_the_expected_ones(tables):
    for name in ("capella", "electra"):
        expected = load_blocks(name).expected["withdrawals"]
        columns = ("withdrawal_index", "validator_index", "address", "amount_gwei")
        assert expected == rows(tables[name]["slot_withdrawals"], "block_slot", *columns)
        of_validators = tables[name]["validator_withdrawals"]
        assert expected == rows(of_validators, "slot", *columns)
        assert of_validators["block_root"].null_count() == 0
        blocks = tables[name]["blocks"].filter(pl.col("withdrawals_count") > 0)
        assert len(expected) == blocks["withdrawals_count"].sum()


def test_credential_changes_equal_the_expected_ones(tables):
    changes = tables["capella"]["bls_changes"]
    assert load_blocks("capella").expected["bls_changes"] == sorted(
        rows(changes, "slot", "validator_index", "address")
    )
    assert tables["electra"]["bls_changes"].select("slot", "validator_index").rows() == [
        (28, 0),
        (91, 1),
    ]


def test_credentials_of_changes_equal_those_of_the_registry(tables):
    """The old credentials are the hash of the BLS key, the new ones have the address."""
    for name in ("capella", "electra"):
        chain = load_blocks(name)
        first = chain.data("validators", 0)
        last = chain.data("validators", chain.recording.last_slot)
        assert last
        for row in tables[name]["bls_changes"].iter_rows(named=True):
            index = row["validator_index"]
            before, after = (rows[index]["validator"]["withdrawal_credentials"]
                             for rows in (first, last))  # fmt: skip
            assert before == row["withdrawal_credentials_0x00"]
            assert after[:2] + "01" + after[4:] == row["withdrawal_credentials_0x01"]


def test_exits_and_slashings_equal_the_expected_ones(tables):
    expected, frames = load_blocks("capella").expected, tables["capella"]
    assert expected["voluntary_exits"] == rows(
        frames["voluntary_exits"], "block_slot", "validator_index", "epoch"
    )
    assert expected["proposer_slashings"] == rows(
        frames["proposer_slashings"], "block_slot", "proposer_index"
    )
    slashed = [
        [row["block_slot"], sorted({*row["attestation1_indices"]} & {*row["attestation2_indices"]})]
        for row in frames["attester_slashings"].iter_rows(named=True)
    ]
    assert expected["attester_slashings"] == slashed
    frames = tables["electra"]
    assert rows(frames["voluntary_exits"], "block_slot", "validator_index", "epoch") == [
        [43, 14, 5],
        [75, 2, 9],
    ]
    assert rows(frames["proposer_slashings"], "block_slot", "proposer_index", "header1_slot") == [
        [90, 15, 89]
    ]
    assert rows(
        frames["attester_slashings"],
        "block_slot", "attestation1_indices", "attestation1_index", "attestation2_target_epoch",
    ) == [[98, [16, 60], 0, 11]]  # fmt: skip


def test_deposits_of_electra_are_requests(tables):
    """The operations list of the recording names the amounts; blocks have no deposits."""
    requests = tables["electra"]["deposit_requests"]
    amounts = (32, 1, 5.5, 32, 40, 20, 12, 1, 2, 200, 50)
    slots = (34, 34, 36, 42, 42, 51, 51, 68, 130, 162, 165)
    assert [[slot, int(eth * 10**9)] for slot, eth in zip(slots, amounts, strict=True)] == rows(
        requests, "block_slot", "amount_gwei"
    )
    assert requests["request_index"].to_list() == [0, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0]
    assert tables["electra"]["slot_deposits"].height == 0


def test_deposits_before_electra_are_rows_of_their_block():
    """The recorded chains have no such block, so one gets the fields of the specification."""
    chain = load_blocks("capella")
    data = {
        "pubkey": "0x" + "AB" * 48,
        "withdrawal_credentials": "0x00" + "cd" * 31,
        "amount": "32000000000",
        "signature": "0x" + "ef" * 96,
    }
    block = chain.change(40, ("message", "body", "deposits"), [{"proof": [], "data": data}] * 2)
    slots = read_slots(chain.spec, {40: block}, proposers={})
    deposits = build_block_tables(chain.spec, slots)["slot_deposits"]
    assert deposits.drop("time").row(1, named=True) == {
        "block_slot": 40,
        "block_root": compute_block_root(chain.spec, block["message"]),
        "block_index": 1,
        "pubkey": "0x" + "ab" * 48,
        "withdrawal_credentials": "0x00" + "cd" * 31,
        "amount_gwei": 32 * 10**9,
        "signature": "0x" + "ef" * 96,
        "proof": None,
    }


def test_the_wall_has_the_pixels_of_all_graffiti(chain, tables):
    """The patterns are those of the facts about the service."""
    expected = []
    for slot, answer in chain.answers.items():
        graffiti = bytes.fromhex(answer["message"]["body"]["graffiti"][2:]) if answer else b""
        match = re.search(
            rb"graffitiwall:(\d{1,3}):(\d{1,3}):#([0-9a-fA-F]{6})", graffiti
        ) or re.search(rb"gw:(\d{3})(\d{3})([0-9a-fA-F]{6})", graffiti)
        if match:
            proposer = int(answer["message"]["proposer_index"])
            expected.append([slot, int(match[1]), int(match[2]), match[3].decode(), proposer])
    wall = tables[chain.recording.name]["graffiti_wall"]
    assert wall.schema == graffiti_wall.GraffitiWall.schema()
    assert {"altair": 278, "capella": 322, "electra": 138}[chain.recording.name] == wall.height
    assert expected == rows(wall, "slot", "x", "y", "color", "validator_index")


def test_graffiti_text_is_that_of_the_service():
    assert decode_graffiti("0x" + b"plain".ljust(32, b"\0").hex()) == "plain"
    assert decode_graffiti("0x" + b"\0a\0b\xff\xc3\xa9".hex()) == "abé"
    assert decode_graffiti("0x" + "état 🐦�".encode().hex()) == "état 🐦"


def test_the_genesis_block_has_no_proposer_even_if_the_node_does_not_have_it():
    chain = load_blocks("capella")
    for answer in (chain.answers[0], None):
        answers = {0: answer, 1: chain.answers[1]}
        genesis = read_slots(chain.spec, answers, proposers=chain.proposers)[0]
        row = build_block_tables(chain.spec, [genesis])["blocks"].row(0, named=True)
        assert row["status"] == "proposed"
        assert row["proposer_index"] is None
        assert row["block_root"] == chain.headers[0]["root"]


def test_a_lost_block_is_an_error_and_not_a_missed_slot():
    """A pruned node answers 404 as for a missed slot: then the next block has another parent."""
    chain = load_blocks("electra")
    roots = {slot: header["root"] for slot, header in chain.headers.items()}
    answers = {slot: chain.answers[slot] for slot in range(8, 24)}
    slots = read_slots(chain.spec, answers, proposers=chain.proposers)
    assert [(slot.slot, slot.root) for slot in slots if slot.block] == [
        (slot, roots[slot]) for slot in range(8, 24) if slot in roots
    ]
    # Slot 14 is missed.
    check_links(slots)
    check_links(slots, roots[23].upper())
    lost = read_slots(chain.spec, answers | {17: None}, proposers=chain.proposers)
    with pytest.raises(ResponseError, match=r"block of slot 16 .*has lost a later block"):
        check_links(lost)
    lost = read_slots(chain.spec, answers | {23: None}, proposers=chain.proposers)
    check_links(lost)
    with pytest.raises(ResponseError, match=r"block of slot 22 .*has lost a later block"):
        check_links(lost, roots[23])


def test_a_block_of_another_genesis_time_is_an_error():
    """Times of rows follow from the genesis time that the node states; payloads confirm it."""
    chain = load_blocks("electra")
    spec = replace(chain.spec, genesis_time=chain.spec.genesis_time + 3600)
    with pytest.raises(ResponseError, match=rf"timestamp is \d+, .*{spec.genesis_time}"):
        read_slots(spec, {16: chain.answers[16]}, proposers=chain.proposers)


def test_the_roots_of_a_state_confirm_blocks_and_missed_slots():
    """A state has the roots of the last 64 slots of the minimal preset."""
    chain, state = load_blocks("electra"), load_states("electra").state(3)
    answers = {slot: chain.answers[slot] for slot in range(34)}
    check_state(chain.spec, read_slots(chain.spec, answers, proposers=chain.proposers), state)
    lost = read_slots(chain.spec, answers | {17: None}, proposers=chain.proposers)
    with pytest.raises(ResponseError, match="block of slot 16"):
        check_state(chain.spec, lost, state)
    # The state is that of slot 31: no later block shows that the last ones are lost.
    last = dict.fromkeys(range(29, 34))
    lost = read_slots(chain.spec, answers | last, proposers=chain.proposers)
    with pytest.raises(ResponseError, match=r"block of slot 29 .*it is missing"):
        check_state(chain.spec, lost, state)
    # No other block of the epoch shows that its first one follows a block of another fork.
    first = chain.answers[16]
    forked = {**first, "message": {**first["message"], "parent_root": "0x" + "ab" * 32}}
    slots = read_slots(chain.spec, {16: forked}, proposers=chain.proposers)
    with pytest.raises(ResponseError, match=r"block of slot 16 .*the state has the root"):
        check_state(chain.spec, slots, state)


def test_orphaned_blocks_are_rows_beside_the_canonical_one():
    chain = load_blocks("capella")
    orphan = read_orphan(chain.spec, "0x" + "AA" * 32, chain.answers[40], slot=40)
    slots = [*read_slots(chain.spec, {40: chain.answers[40]}, proposers={}), orphan]
    frames = build_block_tables(chain.spec, slots)
    assert sorted(frames["blocks"]["status"]) == ["orphaned", "proposed"]
    # An orphaned block moves no balance.
    withdrawals = slots[0].block.message.body.execution_payload.withdrawals
    for table in ("validator_withdrawals", "slot_withdrawals"):
        assert len(withdrawals) == frames[table].height > 0
    assert frames["blocks"].filter(status="orphaned")["block_root"].item() == "0x" + "aa" * 32


BODY = ("message", "body")


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (("message", "slot"), "17", "message.slot is 17"),
        (("message", "slot"), "eighteen", "`message.slot`"),
        (("message",), [], "`message`"),
        (("signature",), ..., "`signature`"),
        (("signature",), "0xab", "`signature`"),
        (("message", "proposer_index"), "-1", "`message.proposer_index`"),
        (("message", "proposer_index"), str(2**40), "`message.proposer_index`"),
        (("message", "proposer_index"), "1", "message.proposer_index is 1"),
        ((*BODY, "graffiti"), None, "`message.body.graffiti`"),
        ((*BODY, "eth1_data", "deposit_count"), 1.5, "eth1_data.deposit_count`"),
        ((*BODY, "attestations"), ..., "`attestations`"),
        ((*BODY, "attestations", 0, "data", "slot"), ...,
         "`slot` - at `message.body.attestations[0].data`"),
        ((*BODY, "attestations", 0, "aggregation_bits"), "0xf", "aggregation_bits`"),
        ((*BODY, "attestations", 0, "committee_bits"), ..., "attestations[0].committee_bits"),
        ((*BODY, "sync_aggregate"), ..., "message.body.sync_aggregate is missing"),
        ((*BODY, "sync_aggregate", "sync_committee_bits"), "0xffff", "sync_committee_bits has 2"),
        ((*BODY, "execution_payload"), None, "message.body.execution_payload is missing"),
        ((*BODY, "execution_payload", "withdrawals"), ..., "execution_payload.withdrawals is miss"),
        ((*BODY, "execution_payload", "withdrawals", 1, "amount"), str(2**63), "amount`"),
        ((*BODY, "execution_payload", "base_fee_per_gas"), str(10**28), "base_fee_per_gas is 1000"),
        ((*BODY, "execution_payload", "transactions"), "0x", "execution_payload.transactions`"),
        ((*BODY, "blob_kzg_commitments"), ..., "blob_kzg_commitments is missing; deneb added it"),
        ((*BODY, "execution_requests"), ..., "execution_requests is missing; electra added it"),
        ((*BODY, "bls_to_execution_changes"), ..., "bls_to_execution_changes is missing"),
    ],
)  # fmt: skip
def test_a_malformed_block_is_an_error_that_names_slot_and_field(path, value, field):
    chain = load_blocks("electra")
    block = chain.change(18, path, value)
    with pytest.raises(ResponseError, match=r"block of slot 18") as caught:
        read_slots(chain.spec, {18: block}, proposers=chain.proposers)
    assert field in caught.value.message


@pytest.mark.parametrize("value", [[], "text", 5, {"message": None}])
def test_an_answer_that_is_no_block_is_an_error(value):
    with pytest.raises(ResponseError, match="block of slot 3"):
        read_slots(load_blocks("electra").spec, {3: value}, proposers={})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("message", "proposer_index"), "90"),
        ((*BODY, "execution_payload", "withdrawals", 1, "validator_index"), "90"),
        ((*BODY, "voluntary_exits"), [{"message": {"epoch": "1", "validator_index": "99"},
                                       "signature": "0x" + "ab" * 96}]),
    ],
)  # fmt: skip
def test_a_block_that_names_another_validator_is_an_error(path, value):
    """Its content has another root, whether or not a later state has the validator."""
    chain, states = load_blocks("electra"), load_states("electra")
    slots = read_slots(chain.spec, {18: chain.change(18, path, value)}, proposers={})
    for epoch in (2, 3):
        with pytest.raises(ResponseError, match=r"slot 18 .*its content has the root .*the state"):
            check_state(chain.spec, slots, states.state(epoch))
    # An earlier state has no root of the block.
    check_state(chain.spec, slots, states.state(1))


def test_numbers_that_validators_sign_may_exceed_64_bits():
    """No rule of the chain limits the slot or the epoch in a slashed message."""
    chain = load_blocks("electra")
    path = ("message", "body", "attester_slashings", 0, "attestation_2", "data", "source", "epoch")
    block = chain.change(98, path, str(2**64 - 1))
    slots = read_slots(chain.spec, {98: block}, proposers=chain.proposers)
    frame = build_block_tables(chain.spec, slots)["attester_slashings"]
    assert frame["attestation2_source_epoch"].to_list() == [None]


def test_every_table_is_served_and_loaded_without_a_change(tables):
    """The local explorer writes the rows of each table, and a loader reads the same rows."""
    served = {endpoint.table.table_name: endpoint.table for endpoint in ENDPOINTS}
    for name in ("capella", "electra"):
        clock = load_blocks(name).spec.chain
        for table_name, frame in tables[name].items():
            if (table := served.get(table_name)) is None:
                continue
            assert table.schema() == frame.schema
            table.check(frame, clock)
            loaded = table.decode([table.encode(frame, clock)], clock)
            assert frame.equals(table.arrange(loaded)), table_name


def test_the_canonical_block_of_a_slot_paints_and_not_the_orphaned_one():
    chain, path = load_blocks("electra"), ("message", "body", "graffiti")
    canonical, orphan = (
        chain.change(18, path, "0x" + f"gw:{text}".encode().ljust(32, b"\0").hex())
        for text in ("001002ff0000", "00300400ff00")
    )
    slots = [
        read_orphan(chain.spec, "0x" + "aa" * 32, orphan, slot=18),
        *read_slots(chain.spec, {18: canonical}, proposers={}),
    ]
    wall = build_block_tables(chain.spec, slots)["graffiti_wall"]
    assert [(18, 1, 2, "ff0000")] == wall.select("slot", "x", "y", "color").rows()


def list_paths(value, path=()):
    """Yield the path of each value in a block, of two items of each list."""
    if path:
        yield path
    steps = value.items() if isinstance(value, dict) else enumerate(value[:2])
    for step, part in steps if isinstance(value, dict | list) else ():
        yield from list_paths(part, (*path, step))


@functools.cache
def list_places():
    """Return the slots of blocks with operations of all kinds, and the paths of their values."""
    answers = load_blocks("electra").answers
    slots = (18, 28, 42, 43, 90, 98)
    return [(slot, path) for slot in slots for path in list_paths(answers[slot])]


WRONG = [None, ..., "", "0x", "0xzz", "-1", "1.5", -5, 1.5, True, [], [None], {}, "\ud800",
         str(2**63), str(2**64), "9" * 40, "0x" + "ff" * 32]  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(st.data(), st.sampled_from(WRONG))
def test_any_wrong_value_gives_rows_or_an_error_that_names_the_slot(data, value):
    """No value in a response raises an error of another library."""
    chain, (slot, path) = load_blocks("electra"), data.draw(st.sampled_from(list_places()))
    block, refused = chain.change(slot, path, value), None
    try:
        slots = read_slots(chain.spec, {slot: block}, proposers={})
        votes = read_votes(chain.spec, slots, chain.committees)
        assert build_block_tables(chain.spec, slots)["blocks"].height == 1
        assert build_slot_attestations(chain.spec, votes).height == len(votes)
    except ResponseError as error:
        refused = error.message
    assert refused is None or f"slot {slot}" in refused
