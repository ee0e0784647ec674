"""Machines of a fictional operator, and metrics that they pushed in the last hour of the chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.endpoint.absent_table import AbsentTable, TableAbsent
from beaconframes.v2.machine_metrics import PROCESSES, MachineMetrics

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View

NAMES = ("attic-node", "basement-node", "garden shed (backup)")
READINGS = 12
SLOTS_BETWEEN = 25
"""Slots between two readings: five minutes."""

GIB = 2**30
SYSTEM, VALIDATOR, NODE = (pl.col("process") == process for process in PROCESSES)


def require_simulated(view: View, table: str) -> None:
    """Raise TableAbsent for a real chain, which has no fictional operator."""
    if not view.is_simulated:
        raise TableAbsent(AbsentTable(table))


def derive_names(view: View) -> pl.LazyFrame:
    """Return the names of the machines, the same for every API key."""
    require_simulated(view, "machine_names")
    return pl.LazyFrame({"machine": NAMES})


def derive_rows(view: View) -> pl.LazyFrame:
    """Return readings, one row per machine, process and time; counters grow, gauges oscillate."""
    require_simulated(view, "machine_metrics")
    slots = [max(view.head.slot - n * SLOTS_BETWEEN, 0) for n in reversed(range(READINGS))]
    readings = pl.LazyFrame({"nth": range(READINGS), "slot": slots})
    seconds, wave = pl.col("nth") * 300, pl.col("nth") % 4
    has_fallback = pl.col("machine") == NAMES[0]
    columns = {
        "client_name": pl.when(VALIDATOR)
        .then(pl.lit("sim-keys"))
        .when(NODE)
        .then(pl.lit("sim-node")),
        "exporter_version": pl.lit("0.1"),
        "cpu_cores": pl.when(SYSTEM).then(4),
        "cpu_threads": pl.when(SYSTEM).then(8),
        "cpu_node_user_seconds_total": pl.when(SYSTEM).then(seconds * 0.25),
        "cpu_node_system_seconds_total": pl.when(SYSTEM).then(seconds * 0.05),
        "cpu_node_iowait_seconds_total": pl.when(SYSTEM).then(seconds * 0.01),
        "cpu_node_idle_seconds_total": pl.when(SYSTEM).then(seconds * 0.69),
        "memory_node_bytes_total": pl.when(SYSTEM).then(16 * GIB),
        "memory_node_bytes_free": pl.when(SYSTEM).then((2 + wave) * GIB),
        "memory_node_bytes_cached": pl.when(SYSTEM).then((5 - wave) * GIB),
        "memory_node_bytes_buffers": pl.when(SYSTEM).then((1 + wave) * GIB // 8),
        "disk_node_io_seconds": pl.when(SYSTEM).then(seconds * 0.02),
        "disk_node_reads_total": pl.when(SYSTEM).then(seconds * 12),
        "disk_node_writes_total": pl.when(SYSTEM).then(seconds * 40),
        "network_node_bytes_total_receive": pl.when(SYSTEM).then(seconds * 600_000),
        "network_node_bytes_total_transmit": pl.when(SYSTEM).then(seconds * 400_000),
        "disk_node_bytes_total": pl.when(SYSTEM).then(2048 * GIB),
        "disk_node_bytes_free": pl.when(SYSTEM).then((900 - pl.col("nth")) * GIB),
        "boot_time": pl.when(SYSTEM).then(view.chain.time_expr("slot", pl.lit(slots[0]))),
        "os": pl.when(SYSTEM).then(pl.lit("lin")),
        "cpu_process_seconds_total": pl.when(~SYSTEM).then(seconds * 0.1),
        "memory_process_bytes": pl.when(~SYSTEM).then((1 + wave) * GIB),
        "client_version": pl.when(VALIDATOR).then(pl.lit("1.0.0")).when(NODE).then(pl.lit("1.2.1")),
        "client_build": pl.when(VALIDATOR).then(pl.lit("1")).when(NODE).then(pl.lit("7")),
        "validator_total": pl.when(VALIDATOR).then(40),
        "validator_active": pl.when(VALIDATOR).then(40),
        "disk_beaconchain_bytes_total": pl.when(NODE).then(180 * GIB + seconds * 9_000),
        "network_libp2p_bytes_total_receive": pl.when(NODE).then(seconds * 350_000),
        "network_libp2p_bytes_total_transmit": pl.when(NODE).then(seconds * 250_000),
        "sync_eth2_fallback_configured": pl.when(VALIDATOR).then(has_fallback),
        "sync_eth2_fallback_connected": pl.when(VALIDATOR).then(has_fallback & (wave > 0)),
        "sync_eth1_fallback_configured": pl.when(NODE).then(has_fallback),
        "sync_eth1_fallback_connected": pl.when(NODE).then(has_fallback & (wave > 1)),
        "network_peers_connected": pl.when(NODE).then(60 + wave),
        "sync_eth1_connected": pl.when(NODE).then(pl.lit(value=True)),
        "sync_eth2_synced": pl.when(NODE).then(pl.lit(value=True)),
        "sync_beacon_head_slot": pl.when(NODE).then(pl.col("slot")),
    }
    machines = pl.LazyFrame({"machine": NAMES})
    processes = pl.LazyFrame({"process": PROCESSES})
    null_columns = [
        pl.lit(None, dtype).alias(name)
        for name, dtype in MachineMetrics.schema().items()
        if name not in {*columns, "machine", "process", "time"}
    ]
    return (
        machines.join(processes, how="cross")
        .join(readings, how="cross")
        .with_columns(*null_columns, time=view.chain.time_expr("slot", pl.col("slot")), **columns)
    )
