"""Metrics that machines push: system, node and validator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from beaconframes.client import Values, loader
from beaconframes.endpoint import (
    Cursor,
    Endpoint,
    Envelope,
    Role,
    Shape,
    TimestampRange,
    ValueFilter,
)
from beaconframes.errors import SchemaError
from beaconframes.schema import Count, Flag, Number, Slot, Table, Text, UnixTime
from beaconframes.time_range import Moment

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import polars as pl

    from beaconframes.calendar import Chain
    from beaconframes.schema import EnvelopeContext

ENDING = "_metrics"
PROCESSES = ("system", "validator", "node")


class MachineMetrics(Table):
    """Metrics of machines. One row per machine, process and reading."""

    machine = Text("Name of the machine, as its owner chose it.", key=True)
    process = Text("Process of the reading: system, validator or node.", key=True)
    client_name = Text("Name of the client; null for system.", key=True, nullable=True)
    time = UnixTime("Time of the reading, UTC.", key=True, wire="timestamp")
    exporter_version = Text("Version of the exporter.", optional=True)
    cpu_cores = Count("Cores; of system.", optional=True)
    cpu_threads = Count("Threads; of system.", optional=True)
    cpu_node_system_seconds_total = Number(
        "Seconds of CPU in the kernel; of system.", optional=True
    )
    cpu_node_user_seconds_total = Number("Seconds of CPU in programs; of system.", optional=True)
    cpu_node_iowait_seconds_total = Number(
        "Seconds of CPU waiting for disks; of system.", optional=True
    )
    cpu_node_idle_seconds_total = Number("Seconds of CPU idle; of system.", optional=True)
    memory_node_bytes_total = Count("Bytes of memory; of system.", optional=True)
    memory_node_bytes_free = Count("Free bytes.", optional=True)
    memory_node_bytes_cached = Count("Bytes of memory that cache files.", optional=True)
    memory_node_bytes_buffers = Count("Bytes of memory in buffers.", optional=True)
    disk_node_bytes_total = Count("Bytes of disk; of system.", optional=True)
    disk_node_bytes_free = Count("Free bytes.", optional=True)
    disk_node_io_seconds = Number("Seconds that disks were busy; of system.", optional=True)
    disk_node_reads_total = Count("Reads from disk; of system.", optional=True)
    disk_node_writes_total = Count("Writes to disk; of system.", optional=True)
    network_node_bytes_total_receive = Count("Bytes received; of system.", optional=True)
    network_node_bytes_total_transmit = Count("Bytes sent; of system.", optional=True)
    boot_time = UnixTime(
        "Boot time, UTC; of system.", wire="misc_node_boot_ts_seconds", optional=True
    )
    os = Text("Operating system; of system.", wire="misc_os", optional=True)
    cpu_process_seconds_total = Number("Seconds of CPU; of validator and node.", optional=True)
    memory_process_bytes = Count("Bytes of memory; of validator and node.", optional=True)
    client_version = Text("Version of the client; of validator and node.", optional=True)
    client_build = Text("Build of the client; of validator and node.", optional=True)
    sync_eth2_fallback_configured = Flag(
        "Whether a fallback beacon node is configured.", optional=True
    )
    sync_eth2_fallback_connected = Flag("Whether the fallback is connected.", optional=True)
    validator_total = Count("Keys; of validator.", optional=True)
    validator_active = Count("Keys that are active; of validator.", optional=True)
    disk_beaconchain_bytes_total = Count("Bytes of the chain on disk; of node.", optional=True)
    network_libp2p_bytes_total_receive = Count("Bytes received from peers; of node.", optional=True)
    network_libp2p_bytes_total_transmit = Count("Bytes sent to peers; of node.", optional=True)
    network_peers_connected = Count("Peers; of node.", optional=True)
    sync_eth1_connected = Flag("Whether an execution client is connected; of node.", optional=True)
    sync_eth2_synced = Flag("Whether the node is synced; of node.", optional=True)
    sync_beacon_head_slot = Slot("Head slot of the node; of node.", optional=True)
    sync_eth1_fallback_configured = Flag(
        "Whether a fallback execution client is configured; of node.", optional=True
    )
    sync_eth1_fallback_connected = Flag(
        "Whether that fallback is connected; of node.", optional=True
    )

    @classmethod
    def decode(
        cls, pages: Iterable[bytes], chain: Chain, contexts: Sequence[EnvelopeContext] = ()
    ) -> pl.DataFrame:
        """Return the readings; each list of a page belongs to one kind of process."""
        return super().decode((merge_process_lists(page) for page in pages), chain, contexts)

    @classmethod
    def encode(
        cls,
        frame: pl.DataFrame,
        chain: Chain,
        *,
        without: Collection[str] = (),
        public: bool = False,
    ) -> bytes:
        """Return the readings as one object of lists."""
        raw = super().encode(frame, chain, without=without, public=public)
        lists: dict[str, list[Any]] = {f"{process}{ENDING}": [] for process in PROCESSES}
        for record in msgspec.json.decode(raw):
            values = {name: value for name, value in record.items() if value is not None}
            lists[f"{values.pop('process')}{ENDING}"].append(values)
        return msgspec.json.encode([lists])


def merge_process_lists(page: bytes) -> bytes:
    """Return the readings of a page in one list, each with its process."""
    if page == b"[]":
        return page
    try:
        lists = msgspec.json.decode(page, type=dict[str, list[dict[str, Any]] | None])
    except msgspec.MsgspecError as error:
        raise SchemaError(f"machine_metrics is not an object of lists ({error})") from None
    return msgspec.json.encode(
        [
            {**record, "process": name.removesuffix(ENDING)}
            for name, records in lists.items()
            for record in records or []
        ]
    )


MACHINE_METRICS = Endpoint(
    "machine_metrics",
    route="POST /api/v2/machine-metrics",
    table=MachineMetrics,
    parameters=(
        ValueFilter("machines", MachineMetrics.machine, role=Role.SUBJECT),
        TimestampRange(MachineMetrics.time),
    ),
    pagination=Cursor(),
    envelope=Envelope.V2,
    shape=Shape.OBJECT,
)


@loader(MACHINE_METRICS)
def load_machine_metrics(
    machines: str | Iterable[str] | None = None,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
) -> Values:
    """Load the metrics that machines pushed with this key, one row per machine, process and
    reading.

    Ten readings per request.

    Parameters
    ----------
    machines
        Names of machines; `load_machine_names` lists them. Default: all.
    since, until
        First and last instant, inclusive: a date, a datetime or ``"12h"``. Numbers are invalid,
        because machines have no epochs. Default: all readings that the service still has.
        A date is the whole UTC day: ``until="2026-10-01"`` includes all of October 1.
        ``"2026-10"`` is the whole month.
        A Timestamp is one instant: ``until=pd.Timestamp("2026-10-01")`` ends at its midnight.

    Returns
    -------
    polars.DataFrame
        Sorted by ``machine``, ``process``, ``client_name``, ``time``. Totals count from the start
        of a process. A column that a kind of process does not have is null.

    Notes
    -----
    ``POST /api/v2/machine-metrics``. Its times are assumed to be Unix seconds. Never final.
    """
    return {"machines": machines, "since": since, "until": until}
