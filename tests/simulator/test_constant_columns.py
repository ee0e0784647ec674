"""E16: columns of the simulated chain that are constant, each with the reason.

Tests cannot find code that ignores a column with one value. So every table of V1 and every answer
of V2 uses all its columns, or the reason stands here.
"""

from __future__ import annotations

import polars as pl
import pytest

from beaconframes.answers.v2 import RECORDS, ROWS, SUMMARIES
from beaconframes.server.service import Service
from beaconframes.v1 import ENDPOINTS
from beaconframes.v1._execution_requests import REQUEST_LISTS
from beaconframes.v2 import ENDPOINTS as ENDPOINTS_V2

from ..support.cases import every

V1 = {e.table.table_name: e.table for e in (*ENDPOINTS, *REQUEST_LISTS)}
V2 = {e.name: RECORDS.get(e.name, e.table) for e in ENDPOINTS_V2 if e.name in ROWS}
RECENT = {"rewards": 40, "performance": 40, "slot_sync_committee_duties": 3} | dict.fromkeys(
    ("balances", "slot_attestation_duties", "rewards_aggregate", "performance_aggregate", "apy_roi",
     "network_performance", "entities", "sub_entities", "owners", "operators"),
    8,
)  # fmt: skip
"""Large answers, of which so many of the last epochs are enough."""


@pytest.fixture(scope="module")
def view(chain):
    """The dataset of the chain as the local explorer reads it."""
    return Service(chain).views.current()


def find_constant(rows, names):
    """Return the named columns with one value at most; of one row, those that are null or 0."""
    schema = rows.collect_schema()
    names = [name for name in names if name in schema]
    columns = [pl.col(n).list.len() if schema[n].is_nested() else pl.col(n) for n in names]
    differs = [
        (column.min() != column.max()).alias(column.meta.output_name()) for column in columns
    ]
    has_value = [
        (column.is_not_null() & (column.cast(pl.String).str.strip_chars("0.") != "")).any()
        for column in columns
    ]
    count, *varies = rows.select(pl.len().alias("rows"), *differs).collect().row(0)
    used = varies if count > 1 else rows.select(has_value).collect().row(0)
    return {name for name, is_used in zip(names, used, strict=True) if not is_used}


@pytest.mark.parametrize("table", V1)
def test_columns_of_v1(view, table):
    """E16: no other column of a table of V1 is constant."""
    rows = view.scan(table)
    names = V1[table].schema().names()
    reasons = {*REASONS.get(table, ())}
    # Some operations are so rare that no block has two of a kind: each is the first of its block.
    if (
        "block_index" in names
        and rows.select(pl.col("block_slot").is_unique().all()).collect().item()
    ):
        reasons.add("block_index")
    assert reasons == find_constant(rows, names)


@pytest.mark.parametrize("name", every(3, V2))
def test_columns_of_v2(view, name):
    """E16: no other column of an answer of V2 is constant."""
    rows = ROWS[name](view)
    if name in RECENT:
        columns = rows.collect_schema()
        unit = next(u for u in ("last_epoch", "epoch", "slot") if u in columns)
        size = view.chain.slots_per_epoch if unit == "slot" else 1
        rows = rows.filter(pl.col(unit) > (view.head.epoch - RECENT[name]) * size)
    if name in SUMMARIES:
        rows = SUMMARIES[name](rows)
    assert set(REASONS_V2.get(name, ())) == find_constant(rows, V2[name].schema())


NO_CONSOLIDATIONS = "no validators are consolidated"
NO_LEAK = "each epoch is final two epochs later"
NO_BLOBS = "payloads have no blobs"
NO_MINING = "there is no proof of work after the merge"
NO_CONTRACTS = "recipients of rewards are no contracts"
ONE_COMMITTEE = "0 since Electra"
ONE_OPERATION = "a validator has one operation in a slot"
ONE_PER_BLOCK = "operations are so rare that no block has two of a kind"
PHASE_0 = "inclusion delays have no rewards since Altair"
HEAD_ONLY = "the answer is about the head"
FINAL_ONLY = "the answer has final epochs only"
NO_HEAD_PENALTY = "a missing head vote has no penalty"
PAST_DUTIES = "the duties of an epoch are known when it is final"
SAME_MACHINES = "the machines are alike"
TOP_LEVEL = "all owners are on the top level"
ONE_POOL = "the minipools of the pool are alike, and none was slashed"

REASONS: dict[str, dict[str, str]] = {
    "income_history": {"finality_delay_penalty_gwei": NO_LEAK},
    "blocks": {
        "exec_gas_limit": "all proposers vote for the same limit",
        "exec_logs_bloom": "filters are empty: a filter per row takes a quarter of the memory",
    },
    "attestations": {"committee_index": ONE_COMMITTEE},
    "deposits": {"removed": "no reorganization removes execution blocks"},
    "proposal_luck": {"time_frame": "the chain is shorter than the second time frame"},
    "validator_stats": {
        "attester_slashings": "the one attester slashing is after the last complete day",
        "orphaned_attestations": "no attestation is in an orphaned block alone",
    },
    "slot_attestations": {"committee_index": ONE_COMMITTEE},
    "attester_slashings": {
        "attestation1_index": ONE_COMMITTEE,
        "attestation2_index": ONE_COMMITTEE,
    },
    "slot_deposits": {"proof": "the service leaves it out"},
    "execution_blocks": {
        "gas_limit": "all proposers vote for the same limit",
        **dict.fromkeys(("consensus_algorithm", "difficulty"), NO_MINING),
        **dict.fromkeys(("uncle_hash", "uncles_count"), NO_MINING),
    },
    "pool_validators": dict.fromkeys(
        ("is_vacant", "minipool_node_fee", "node_refund_balance_wei", "penalty_count", "version"),
        ONE_POOL,
    ),
    "consolidation_requests": dict.fromkeys(
        V1["consolidation_requests"].schema().names(), NO_CONSOLIDATIONS
    ),
    "switch_to_compounding_requests": {"request_index": ONE_PER_BLOCK},
}
REASONS_V2: dict[str, dict[str, str]] = {
    "validators": {"epoch": HEAD_ONLY, "finality": HEAD_ONLY},
    "metadata": dict.fromkeys(("owner", "operator"), "their names replace the entity later"),
    "rewards": {
        "attestation_head_penalty_wei": NO_HEAD_PENALTY,
        "attestation_inactivity_leak_penalty_wei": NO_LEAK,
        "attestation_inclusion_delay_missed_wei": PHASE_0,
        "attestation_inclusion_delay_total_wei": PHASE_0,
        "finality": FINAL_ONLY,
    },
    "rewards_aggregate": {
        "attestation_head_penalty_wei": NO_HEAD_PENALTY,
        "attestation_inactivity_leak_penalty_wei": NO_LEAK,
        "attestation_inclusion_delay_missed_wei": PHASE_0,
        "attestation_inclusion_delay_total_wei": PHASE_0,
    },
    "performance": {"finality": FINAL_ONLY, "sync_committee_scheduled": PAST_DUTIES},
    "performance_aggregate": {"sync_committee_scheduled": PAST_DUTIES},
    "network_performance": {"sync_committee_scheduled": PAST_DUTIES},
    "proposal_slots": {"finality": FINAL_ONLY},
    "yield_index": {"finality": FINAL_ONLY},
    "attestation_slots": {"finality": FINAL_ONLY},
    "deposit_slots": {"count": ONE_OPERATION, "finality": FINAL_ONLY},
    "withdrawal_slots": {"count": ONE_OPERATION, "finality": FINAL_ONLY},
    "validator_queues": {"amount_wei": "the validators in queues have 32 ETH"},
    "slot_deposits": {"withdrawal_type": "the new validators have addresses"},
    "config": {"altair_fork_epoch": "sync committees exist from genesis"},
    "owners": {"ancestors": TOP_LEVEL},
    "operators": {"ancestors": TOP_LEVEL},
    "slot": {
        "blob_commitments_count": NO_BLOBS,
        "sync_assigned": "each committee has 512 seats",
        **dict.fromkeys(
            (f"{kind}_consolidations_{unit}" for kind in ("queued", "processed")
             for unit in ("count", "wei")),
            NO_CONSOLIDATIONS,
        ),
    },
    "slot_withdrawals": {
        "reject_reason": "requests are rejected for one reason",
        "withdrawal_type": "withdrawals go to addresses only",
    },
    "block": {
        **dict.fromkeys(("blob_gas_excess", "blob_gas_used", "blob_transactions_count"), NO_BLOBS),
        **dict.fromkeys(("difficulty", "miner", "miner_is_contract", "mix_hash"), NO_MINING),
        **dict.fromkeys(("uncles_count", "uncles_hash"), NO_MINING),
        "gas_limit": "all proposers vote for the same limit",
    },
    "block_rewards": {
        **dict.fromkeys(
            ("mev_is_contract", "priority_fees_is_contract", "total_reward_is_contract"),
            NO_CONTRACTS,
        ),
        **dict.fromkeys(("mining_is_contract", "mining_recipient"), NO_MINING),
        **dict.fromkeys(("static_block_reward_wei", "uncle_inclusion_reward_wei"), NO_MINING),
    },
    "slot_attestation_duties": {
        "committee_index": ONE_COMMITTEE,
        "head_penalty_wei": NO_HEAD_PENALTY,
        "inactivity_leak_penalty_wei": NO_LEAK,
        "inclusion_delay_missed_wei": PHASE_0,
        "inclusion_delay_total_wei": PHASE_0,
    },
    "slot_sync_committee_duties": {"finality": FINAL_ONLY},
    "queues": dict.fromkeys(("topup_balance_wei", "topup_count"), "top-ups are credited at once"),
    "machine_metrics": dict.fromkeys(
        ("boot_time", "cpu_cores", "cpu_threads", "disk_node_bytes_total", "exporter_version",
         "memory_node_bytes_total", "os", "sync_eth1_connected", "sync_eth2_synced",
         "validator_active", "validator_total"),
        SAME_MACHINES,
    ),
}  # fmt: skip
