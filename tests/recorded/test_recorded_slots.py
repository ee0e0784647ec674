"""Recorded responses about slots, deposits and queues, replayed and compared cell by cell.

The expected values follow from the recorded JSON and from the lines below, which are written by
hand from the documentation of the API.
"""

from __future__ import annotations

import warnings

import pytest

import beaconframes as bf
from beaconframes.errors import IntegrityError

from ..support.contract import TABLES, read, rows, unknown
from ..support.recorded_files import RECORDED, read_index, read_records
from ..support.replay import replaying

LINES = {
    "slots": TABLES["epoch_slots"],
    **read("""
slot_attestations
  block_slot*                     int
  block_root*                     root
  block_index*                    int
  time                            start-of-block_slot
  slot                            int
  committee_index                 int        committeeindex
  validators                      indices
  aggregation_bits                hex        aggregationbits
  beacon_block_root               hex        beaconblockroot
  source_epoch                    int
  source_root                     hex
  target_epoch                    int
  target_root                     hex
  signature                       hex

attester_slashings
  block_slot*                     int
  block_root*                     root
  block_index*                    int
  time                            start-of-block_slot
  attestation1_slot               int
  attestation1_index              int
  attestation1_indices            indices
  attestation1_beacon_block_root  hex        attestation1_beaconblockroot
  attestation1_source_epoch       int
  attestation1_source_root        hex
  attestation1_target_epoch       int
  attestation1_target_root        hex
  attestation1_signature          hex
  attestation2_slot               int
  attestation2_index              int
  attestation2_indices            indices
  attestation2_beacon_block_root  hex        attestation2_beaconblockroot
  attestation2_source_epoch       int
  attestation2_source_root        hex
  attestation2_target_epoch       int
  attestation2_target_root        hex
  attestation2_signature          hex

proposer_slashings
  block_slot*                     int
  block_root*                     root
  block_index*                    int
  time                            start-of-block_slot
  proposer_index                  int        proposerindex
  header1_slot                    int
  header1_parent_root             hex        header1_parentroot
  header1_state_root              hex        header1_stateroot
  header1_body_root               hex        header1_bodyroot
  header1_signature               hex
  header2_slot                    int
  header2_parent_root             hex        header2_parentroot
  header2_state_root              hex        header2_stateroot
  header2_body_root               hex        header2_bodyroot
  header2_signature               hex

slot_withdrawals
  block_slot*                     int
  withdrawal_index*               int        withdrawalindex
  time                            start-of-block_slot
  validator_index                 int        validatorindex
  address                         hex
  amount_gwei                     int        amount

voluntary_exits
  block_slot*                     int
  block_root*                     root
  block_index*                    int
  time                            start-of-block_slot
  epoch                           int
  validator_index                 int        validatorindex
  signature                       hex

slot_deposits
  block_slot*                     int
  block_root*                     root
  block_index*                    int
  time                            start-of-block_slot
  pubkey                          hex        publickey
  withdrawal_credentials          hex        withdrawalcredentials
  amount_gwei                     int        amount
  signature                       hex
  proof                           text

transaction_deposits
  block_number*                   int
  tx_index*                       int
  merkletree_index*               hex
  tx_hash*                        hex
  time                            unix       block_ts
  from_address                    hex
  pubkey                          hex        publickey
  withdrawal_credentials          hex
  amount_gwei                     int        amount
  signature                       hex
  valid_signature                 flag
  removed                         flag
  tx_input                        hex

deposit_origin
  from_address*                   request
  pubkey*                         hex        public_key publickey
  valid_signature*                flag
  validator_index                 int        validator_index validatorindex

withdrawal_credentials
  credentials*                    request
  validator_index*                int        validatorindex
  pubkey                          hex        publickey

validator_queue
  validators_count*               int        validatorscount
  entering_count                  int        beaconchain_entering
  exiting_count                   int        beaconchain_exiting
  entering_balance_gwei           int        beaconchain_entering_balance
  exiting_balance_gwei            int        beaconchain_exiting_balance
"""),
}
KINDS = {
    "v1-slot": "slots",
    "v1-slot-attestations": "slot_attestations",
    "v1-slot-attesterslashings": "attester_slashings",
    "v1-slot-proposerslashings": "proposer_slashings",
    "v1-slot-withdrawals": "slot_withdrawals",
    "v1-slot-voluntaryexits": "voluntary_exits",
    "v1-slot-deposits": "slot_deposits",
    "v1-eth1deposit": "transaction_deposits",
    "v1-validator-eth1": "deposit_origin",
    "v1-validator-withdrawalCredentials": "withdrawal_credentials",
    "v1-validators-queue": "validator_queue",
}
CONTRADICTORY = {"v1-slot--docs1.json"}
ADDRESS = "0x" + "5a" * 20
"""The subjects of examples that do not state them."""


def table_of(file):
    return KINDS.get(file.partition("--")[0])


INDEX = read_index(KINDS)

pytestmark = pytest.mark.skipif(not INDEX, reason=f"no recorded answers in {RECORDED}")


def call(file):
    """Return the loader's arguments for a recording, and the expected request target."""
    table, found = table_of(file), read_records(file)
    path = INDEX[file]["path"]
    if table == "validator_queue":
        return {}, path
    if table == "transaction_deposits":
        tx = found[0]["tx_hash"]
        return {"tx_hashes": tx}, f"/api/v1/eth1deposit/{tx}"
    if table in ("deposit_origin", "withdrawal_credentials"):
        home, _, subject = path.rpartition("/")
        subject = subject.lower() if subject.startswith("0x") else ADDRESS
        name, most = ("address", 2000) if table == "deposit_origin" else ("credentials", 200)
        return {name: subject}, f"{home}/{subject}?offset=0&limit={most}"
    slot = found[0]["slot" if table == "slots" else "block_slot"]
    path = path.replace("{slot}", str(slot)).replace("{slotOrHash}", str(slot))
    return {"slots": slot}, f"{path}?offset=0&limit=100" if table == "slot_deposits" else path


def replay(file):
    """Load a recording through the client, without a warning."""
    arguments, target = call(file)
    with (
        replaying({"*": (RECORDED / file).read_bytes()}) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000) as explorer,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        frame = getattr(bf, f"load_{table_of(file)}")(**arguments, explorer=explorer)
    assert [f"GET {target}"] == server.arrived
    return frame


@pytest.mark.parametrize("file", sorted(set(INDEX) - CONTRADICTORY))
def test_every_cell_matches_the_recording(file):
    """Values, types, nulls, zeros and order follow from the recorded JSON alone."""
    found = read_records(file)
    arguments = {key: value for key, value in call(file)[0].items() if isinstance(value, str)}
    column = {"address": "from_address", "credentials": "credentials"}
    known = {column[key]: value for key, value in arguments.items() if key in column}
    expected = [row | known for row in rows(table_of(file), found, LINES)]

    frame = replay(file)

    assert INDEX[file]["rows"] == len(found)
    assert {line.name: line.dtype for line in LINES[table_of(file)]} == dict(frame.schema)
    assert expected == frame.rows(named=True)
    kinds = [[type(cell) for cell in row.values()] for row in expected]
    assert kinds == [[type(cell) for cell in row] for row in frame.rows()]


@pytest.mark.parametrize("file", sorted(CONTRADICTORY & set(INDEX)))
def test_an_example_that_contradicts_itself_is_refused(file):
    """G10: an example has slot 12751457 in epoch 398479; it is in epoch 398483."""
    assert INDEX[file]["kind"].startswith("docs example")

    with pytest.raises(IntegrityError, match="slot 12751457 is not in epoch 398479"):
        replay(file)


@pytest.mark.parametrize("table", LINES)
def test_every_field_has_a_column(table):
    """The frame has every recorded field."""
    files = [file for file in INDEX if table_of(file) == table]

    without = {
        field for file in files for r in read_records(file) for field in unknown(table, r, LINES)
    }

    assert files
    assert set() == without


def test_which_tables_have_recordings():
    """Three of the tables have recordings, the others documented examples only."""
    recorded = {table_of(f) for f in INDEX if INDEX[f]["kind"] == "recording"}

    assert {"slots", "transaction_deposits", "deposit_origin"} == recorded
    assert set(LINES) == {table_of(file) for file in INDEX}
