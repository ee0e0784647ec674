"""Recorded responses about validators, replayed through the client and compared cell by cell.

The expected values follow from the recorded JSON and from the lines below, which are written by
hand from the documentation of the API.
"""

from __future__ import annotations

import json
import warnings

import pytest

import beaconframes as bf

from ..support.contract import CALENDAR, TABLES, read, rows, unknown
from ..support.recorded_files import RECORDED, read_index, read_records
from ..support.replay import replaying

LINES = {
    "proposals": TABLES["epoch_slots"],
    **read("""
attestations
  validator_index*                int        validatorindex validator_index
  epoch*                          int
  time                            start-of-epoch
  attester_slot                   int        attesterslot
  inclusion_slot                  int-or-0   inclusionslot
  status                          duty
  committee_index                 int        committeeindex

validator_withdrawals
  withdrawal_index*               int        withdrawalindex
  validator_index                 int        validatorindex validator_index
  epoch                           int
  slot                            int
  time                            start-of-slot
  block_root                      hex        blockroot
  address                         hex
  amount_gwei                     int        amount

deposits
  block_number*                   int
  tx_index*                       int
  merkletree_index*               hex
  tx_hash*                        hex
  time                            unix       block_ts
  from_address                    hex
  pubkey                          hex        publickey public_key
  withdrawal_credentials          hex
  amount_gwei                     int        amount
  signature                       hex
  valid_signature                 flag
  removed                         flag
  tx_input                        hex

bls_changes
  validator_index*                int=0      validatorindex validator_index
  slot*                           int
  epoch                           int
  time                            start-of-slot
  block_root                      hex        blockroot
  bls_pubkey                      hex
  bls_signature                   hex
  address                         hex
  withdrawal_credentials_0x00     credentials withdrawalcredentials_0x00
  withdrawal_credentials_0x01     hex        withdrawalcredentials_0x01

execution_performance
  validator_index*                int        validatorindex validator_index
  performance_1d_wei              wei        performance1d
  performance_7d_wei              wei        performance7d
  performance_31d_wei             wei        performance31d
  performance_365d_wei            wei        performance365d
  performance_total_wei           wei        performanceTotal performancetotal

performance
  validator_index*                int        validatorindex validator_index
  rank_7d                         int        rank7d
  balance_gwei                    int        balance
  performance_today_gwei          int        performancetoday
  performance_1d_gwei             int        performance1d
  performance_7d_gwei             int        performance7d
  performance_31d_gwei            int        performance31d
  performance_365d_gwei           int        performance365d
  performance_total_gwei          int        performancetotal performanceTotal

leaderboard
  rank_7d*                        int        rank7d
  validator_index*                int        validatorindex validator_index
  balance_gwei                    int        balance
  performance_1d_gwei             int        performance1d
  performance_7d_gwei             int        performance7d
  performance_31d_gwei            int        performance31d
  performance_365d_gwei           int        performance365d
  performance_total_gwei          int        performancetotal performanceTotal

attestation_efficiency
  validator_index*                int        validatorindex validator_index
  attestation_efficiency          float

proposal_luck
  validators*                     request
  proposal_luck                   float
  average_proposal_interval       float
  next_proposal_estimate_time     unix       next_proposal_estimate_ts
  time_frame                      text       time_frame_name

validator_stats
  validator_index*                int        validatorindex validator_index
  day*                            int
  time                            start-of-day day_start
  day_end                         end-of-day day_end
  start_balance_gwei              int        start_balance
  end_balance_gwei                int        end_balance
  min_balance_gwei                int        min_balance
  max_balance_gwei                int        max_balance
  start_effective_balance_gwei    int        start_effective_balance
  end_effective_balance_gwei      int        end_effective_balance
  min_effective_balance_gwei      int        min_effective_balance
  max_effective_balance_gwei      int        max_effective_balance
  missed_attestations             int
  orphaned_attestations           int
  proposed_blocks                 int
  missed_blocks                   int
  orphaned_blocks                 int
  attester_slashings              int
  proposer_slashings              int
  deposits_count                  int        deposits
  deposits_amount_gwei            int        deposits_amount
  withdrawals_count               int        withdrawals
  withdrawals_amount_gwei         int        withdrawals_amount
  participated_sync               int
  missed_sync                     int
  orphaned_sync                   int

pool_validators
  validator_index*                int        index validatorindex validator_index
  minipool_address                hex
  minipool_status                 text
  minipool_status_time            unix
  minipool_deposit_type           text
  minipool_node_fee               float
  version                         int
  is_vacant                       flag
  penalty_count                   int
  node_deposit_balance_wei        wei        node_deposit_balance
  user_deposit_balance_wei        wei        user_deposit_balance
  node_refund_balance_wei         wei        node_refund_balance
  node_deposit_credit_wei         wei        node_deposit_credit
  node_address                    hex
  node_timezone_location          text
  node_rpl_stake_base_units       wei        node_rpl_stake
  node_min_rpl_stake_base_units   wei        node_min_rpl_stake
  node_max_rpl_stake_base_units   wei        node_max_rpl_stake
  effective_rpl_stake_base_units  wei        effective_rpl_stake
  rpl_cumulative_rewards_base_units wei      rpl_cumulative_rewards
  unclaimed_rpl_rewards_base_units wei       unclaimed_rpl_rewards
  smoothing_pool_opted_in         flag
  claimed_smoothing_pool_wei      wei        claimed_smoothing_pool
  unclaimed_smoothing_pool_wei    wei        unclaimed_smoothing_pool
"""),
}
KINDS = {
    "v1-validator-proposals": "proposals",
    "v1-validator-attestations": "attestations",
    "v1-validator-withdrawals": "validator_withdrawals",
    "v1-validator-deposits": "deposits",
    "v1-validator-blsChange": "bls_changes",
    "v1-validator-execution-performance": "execution_performance",
    "v1-validator-performance": "performance",
    "v1-validator-leaderboard": "leaderboard",
    "v1-validator-attestationefficiency": "attestation_efficiency",
    "v1-validators-proposalLuck": "proposal_luck",
    "v1-validator-stats": "validator_stats",
    "v1-rocketpool-validator": "pool_validators",
}
LUCKY = 20
"""The validators of the luck example, which does not state them."""


def table_of(file):
    return KINDS.get(file.partition("--")[0])


INDEX = read_index(KINDS)

pytestmark = pytest.mark.skipif(not INDEX, reason=f"no recorded answers in {RECORDED}")


def subject(file, found):
    """Return the validator of a recorded response."""
    index = next((part for part in INDEX[file]["path"].split("/") if part.isdigit()), None)
    if index is not None:
        return int(index)
    if "publickey" in found[0]:
        return found[0]["publickey"]
    named = (found[0].get(name) for name in ("validatorindex", "proposer", "index"))
    return next((name for name in named if name is not None), LUCKY)


def call(file):
    """Return the loader's arguments for a recording, and the expected request target."""
    table, found = table_of(file), read_records(file)
    if table == "leaderboard":
        return {}, INDEX[file]["path"]
    validator = subject(file, found)
    path = (
        INDEX[file]["path"]
        .replace("{indexOrPubkey}", str(validator))
        .replace("{index}", str(validator))
    )
    path = path.replace("rocketpool", "poolprotocol")
    if table == "proposal_luck":
        return {"validators": validator}, f"{path}?validators={validator}"
    if table in ("proposals", "validator_withdrawals", "attestations"):
        epoch = found[0]["epoch"]
        window = f"startEpoch={epoch}&endEpoch={epoch}" if table == "attestations" else (
            f"epoch={epoch}"
        )  # fmt: skip
        return {"validators": validator, "since": epoch, "until": epoch}, f"{path}?{window}"
    return {"validators": validator}, path


def state(epoch):
    """Return the latest-state response for *epoch*."""
    state = {"currentEpoch": epoch, "currentFinalizedEpoch": epoch - 2, "currentSlot": 32 * epoch}
    return json.dumps(state).encode()


def replay(file):
    """Load a recording through the client, without a warning."""
    arguments, target = call(file)
    replies = {"*": (RECORDED / file).read_bytes()}
    if table_of(file) == "attestations":
        replies["GET /api/v1/latestState"] = state(arguments["until"])
    with (
        replaying(replies) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000) as explorer,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        frame = getattr(bf, f"load_{table_of(file)}")(**arguments, explorer=explorer)
    assert [f"GET {target}"] == [target for target in server.arrived if "latestState" not in target]
    return frame


@pytest.mark.parametrize("file", sorted(INDEX))
def test_every_cell_matches_the_recording(file):
    """Values, types, nulls, zeros and order follow from the recorded JSON alone."""
    found = read_records(file)
    expected = rows(table_of(file), found, LINES)
    if table_of(file) == "proposal_luck":
        expected = [row | {"validators": str(LUCKY)} for row in expected]

    frame = replay(file)

    assert INDEX[file]["rows"] == len(found)
    assert {line.name: line.dtype for line in LINES[table_of(file)]} == dict(frame.schema)
    assert expected == frame.rows(named=True)
    kinds = [[type(cell) for cell in row.values()] for row in expected]
    assert kinds == [[type(cell) for cell in row] for row in frame.rows()]


@pytest.mark.parametrize("table", LINES)
def test_only_calendar_fields_have_no_column(table):
    """The week of an attested epoch follows from the epoch; every other field has a column."""
    files = [file for file in INDEX if table_of(file) == table]

    without = {
        field for file in files for r in read_records(file) for field in unknown(table, r, LINES)
    }

    assert files
    assert (CALENDAR if table == "attestations" else set()) == without


def test_which_tables_have_recordings():
    """Five of the tables have recordings, the others documented examples only."""
    recorded = {table_of(f) for f in INDEX if INDEX[f]["kind"] == "recording"}

    expected = {
        "deposits", "execution_performance", "leaderboard", "validator_stats", "pool_validators",
    }  # fmt: skip
    assert expected == recorded
    assert set(LINES) == {table_of(file) for file in INDEX}
