"""Machine metrics of a fictional operator, pushed in the last hour of the chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.server.v2.rows.machine_names import NAMES
from beaconframes.v2.machine_metrics import PROCESSES, MachineMetrics

if TYPE_CHECKING:
    from beaconframes.endpoint import View

READINGS = 12
SLOTS_BETWEEN = 25
"""Slots between two readings: five minutes."""

GIB = 2**30
SYSTEM, VALIDATOR, NODE = (pl.col("process") == process for process in PROCESSES)


def derive_rows(view: View) -> pl.LazyFrame:
    """Return readings, one row per machine, process and time; counters grow, gauges oscillate."""
    slots = [max(view.head.slot - n * SLOTS_BETWEEN, 0) for n in reversed(range(READINGS))]
    readings = pl.LazyFrame({"nth": range(READINGS), "slot": slots})
    seconds, wave = pl.col("nth") * 300, pl.col("nth") % 4
    columns = {
        "client_name": pl.when(VALIDATOR)
        .then(pl.lit("sim-keys"))
        .when(NODE)
        .then(pl.lit("sim-node")),
        "exporter_version": pl.lit("0.1"),
        "cpu_cores": pl.when(SYSTEM).then(4),
        "cpu_threads": pl.when(SYSTEM).then(8),
        "cpu_node_user_seconds_total": pl.when(SYSTEM).then(seconds * 0.25),
        "cpu_node_idle_seconds_total": pl.when(SYSTEM).then(seconds * 0.75),
        "memory_node_bytes_total": pl.when(SYSTEM).then(16 * GIB),
        "memory_node_bytes_free": pl.when(SYSTEM).then((2 + wave) * GIB),
        "disk_node_bytes_total": pl.when(SYSTEM).then(2048 * GIB),
        "disk_node_bytes_free": pl.when(SYSTEM).then((900 - pl.col("nth")) * GIB),
        "boot_time": pl.when(SYSTEM).then(view.chain.time_expr("slot", pl.lit(slots[0]))),
        "os": pl.when(SYSTEM).then(pl.lit("lin")),
        "cpu_process_seconds_total": pl.when(~SYSTEM).then(seconds * 0.1),
        "memory_process_bytes": pl.when(~SYSTEM).then((1 + wave) * GIB),
        "client_version": pl.when(~SYSTEM).then(pl.lit("1.0.0")),
        "validator_total": pl.when(VALIDATOR).then(40),
        "validator_active": pl.when(VALIDATOR).then(40),
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
