"""``beaconframes index``: write the chain of a beacon node into a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli import exit_codes, signals
from beaconframes.cli.common_options import FILE, json_option, typed_options
from beaconframes.cli.from_signature import check_validator, parse_time
from beaconframes.cli.list_argument import parse_list
from beaconframes.cli.messages import print_message, replace_arguments
from beaconframes.cli.rendering import print_json, print_table
from beaconframes.cli.runner import current_state
from beaconframes.errors import UsageError
from beaconframes.text import visible

if TYPE_CHECKING:
    from pathlib import Path

    from beaconframes.beacon_node.connection import NodeConnection
    from beaconframes.beacon_node.index_report import IndexReport
    from beaconframes.beacon_node.indexing import IndexProgress

RESUME_HINT = "the stored epochs are complete; run the same command again to continue"
WAIT_HINT = "ending after the epoch in progress; press Ctrl-C again to stop immediately"
MAX_ROWS = 20
"""Unexplained epochs in the table on the terminal; --json lists all."""

OPTIONS: list[click.Parameter] = [
    click.Option(
        ["--node"],
        metavar="URL",
        envvar="BEACONFRAMES_NODE",
        help="Address of the beacon node. The list of processes shows the options, so put an "
        "address with credentials into BEACONFRAMES_NODE. [BEACONFRAMES_NODE]",
    ),
    click.Option(
        ["--execution"],
        metavar="URL",
        envvar="BEACONFRAMES_EXECUTION",
        help="Address of the JSON-RPC of the execution node, for fees, execution blocks and "
        "deposits. [BEACONFRAMES_EXECUTION]",
    ),
    click.Option(["--out"], type=FILE, required=True, help="Folder of the dataset."),
    click.Option(
        ["--validators"],
        multiple=True,
        metavar="FILE|LIST",
        help="Indices or public keys, separated by commas; 1-100 is a range, - reads standard "
        "input. The default is all validators.",
    ),
    click.Option(
        ["--since"],
        metavar="TIME",
        help="First epoch; the default is the oldest one that the node can answer.",
    ),
    click.Option(
        ["--until"], metavar="TIME", help="Last epoch; the default is the last final one."
    ),
    click.Option(
        ["--tables"],
        metavar="NAMES",
        help="Tables, separated by commas, or all. The default is all, but slot_attestations "
        "only on chains with up to 500,000 validators.",
    ),
    click.Option(
        ["--workers"],
        type=click.IntRange(min=1, max=4),
        help="Epochs that are read at the same time; the default is 2. With more than 500,000 "
        "validators it is 1.",
    ),
    click.Option(
        ["--follow"],
        is_flag=True,
        help="Add each epoch as it becomes final, and record orphaned blocks, until Ctrl-C.",
    ),
    click.Option(
        ["--check"],
        is_flag=True,
        help="Report the epochs of the dataset that are unexplained. Without --node, no request is "
        "sent.",
    ),
    click.Option(
        ["--progress/--no-progress"],
        default=None,
        help="Show progress on standard error; the default is to show it on a terminal. "
        "[BEACONFRAMES_PROGRESS]",
    ),
    json_option(),
]


@click.command(params=OPTIONS)
def index(
    node: str | None,
    execution: str | None,
    out: Path,
    validators: tuple[str, ...],
    check: bool,
    as_json: bool,
    **values: Any,
) -> None:
    """Write the chain of a beacon node into a dataset.

    Load from it with --dataset, or serve it. Each epoch is compared with the balances, and stored
    in one commit. Run the same command again to continue, or to add newly final epochs. The command
    ends with status 1 if a change of balance is unexplained.
    """
    from beaconframes.beacon_node.index_report import read_report

    if check and "node" not in typed_options():
        report = read_report(out)
        print_report(report, {}, {}, as_json=as_json)
    else:
        if not node:
            raise UsageError(
                "no node is given",
                hint="Give its address with --node or BEACONFRAMES_NODE; --check reads a "
                "dataset without a node",
            )
        if "node" in typed_options() and "execution" not in typed_options():
            # The execution node of the environment belongs to the node of the environment.
            execution = None
        write_index(node, execution, out, validators, as_json=as_json, **values)
        report = read_report(out)
    if not report.is_explained:
        click.get_current_context().exit(exit_codes.FAILURE)


def write_index(
    node: str,
    execution: str | None,
    out: Path,
    validators: tuple[str, ...],
    *,
    since: str | None,
    until: str | None,
    tables: str | None,
    workers: int | None,
    follow: bool,
    progress: bool | None,
    as_json: bool,
) -> None:
    """Index the epochs of a node, and print the report."""
    from beaconframes.beacon_node.connection import NodeConnection
    from beaconframes.beacon_node.follower import follow as follow_chain
    from beaconframes.beacon_node.index import open_threads
    from beaconframes.beacon_node.index_report import read_report
    from beaconframes.beacon_node.indexing import index as index_chain
    from beaconframes.config import settings

    chosen: dict[str, Any] = {
        "validators": parse_list("--validators", validators, check_validator)
        if validators
        else None,
        "tables": None if tables is None else parse_tables(tables),
        "since": None if since is None else parse_time("--since", since),
    }
    if until is not None:
        if follow:
            raise UsageError("--follow and --until exclude each other", hint="Use one of them")
        chosen["until"] = parse_time("--until", until)
    shown: dict[str, Any] = {} if progress is None else {"progress": progress}
    connection = NodeConnection(node, execution)
    stored: list[int] = []

    def count(progress: IndexProgress) -> None:
        stored.append(progress.epoch)
        if follow and progress.done == progress.total and not as_json:
            click.echo(f"Epoch {progress.epoch:,} is stored")

    signals.set_hint(RESUME_HINT)
    try:
        with (
            settings(**shown),
            open_threads(workers) as executor,
            signals.finish_on_first_interrupt(WAIT_HINT) as stop,
        ):
            (follow_chain if follow else index_chain)(
                connection, out, **chosen, executor=executor, on_epoch=count, stop=stop
            )
        facts = {"added_epochs": len(stored), "requests": connection.request_count}
        print_report(read_report(out), facts, find_absent(connection), as_json=as_json)
    finally:
        connection.close()
    if stop.is_set():
        raise signals.StoppedBySignal(exit_codes.INTERRUPTED)


def parse_tables(text: str) -> list[str] | str:
    """Return the names of tables, or ``all``; ``income-history`` is valid as well."""
    if text.strip() == "all":
        return "all"
    return [name.strip().replace("-", "_") for name in text.split(",") if name.strip()]


def find_absent(connection: NodeConnection) -> dict[str, str]:
    """Return the tables that the node cannot answer, each with the reason."""
    tables = connection.capabilities.tables
    options = current_state().options
    return {
        each.table: replace_arguments(each.reason, options)
        for each in tables
        if each.oldest_epoch is None
    }


def print_report(
    report: IndexReport, facts: dict[str, int], absent: dict[str, str], *, as_json: bool
) -> None:
    """Print what the index has, what it has not and why, and what is unexplained."""
    counts = {name: report.count(name) for name in ("explained", "unexplained", "unverified")}
    if as_json:
        print_json(
            {
                "dataset": str(report.path),
                "chain": report.chain_name,
                "epochs": [list(interval) for interval in report.epochs],
                **counts,
                "rows": report.rows,
                "bytes": report.bytes,
                "tables": list(report.tables),
                "left_out": list(report.left_out),
                "remarks": dict(
                    report.coverage.drop_nulls("remark").select("epoch", "remark").iter_rows()
                ),
                **facts,
                "absent": absent,
            },
            report.changes,
        )
    else:
        print_summary(report, counts, facts, absent)
    if not report.is_explained:
        changes = report.summarize_changes()
        if not as_json:
            print_table(changes, MAX_ROWS)
        print_message(
            f"{counts['unexplained']:,} epochs are unexplained: balances of "
            f"{report.changes['validator_index'].n_unique():,} validators changed by "
            f"{changes['unexplained_gwei'].sum():,} gwei more or less than their income in epochs "
            f"{list_intervals(changes['epoch'].to_list())}"
        )


def print_summary(
    report: IndexReport, counts: dict[str, int], facts: dict[str, int], absent: dict[str, str]
) -> None:
    """Print the summary of an index as text."""
    epochs = sum(counts.values())
    if facts:
        click.echo(f"{facts['added_epochs']:,} epochs added with {facts['requests']:,} requests")
    for reason, names in group_by_reason(absent).items():
        click.echo(visible(f"Not available: {', '.join(names)}: {reason}"))
    if report.left_out:
        large = ",".join(report.left_out)
        click.echo(f"Left out because of its size: {large}. --tables {large} adds it")
    listed = list_intervals(report.coverage["epoch"].to_list())
    click.echo(
        f"{click.format_filename(report.path)} ({visible(report.chain_name)}): {epochs:,} epochs"
        f"{f' ({listed})' if listed else ''}, {report.rows:,} rows in {len(report.tables)} tables, "
        f"{report.bytes:,} bytes"
    )
    click.echo(", ".join(f"{count:,} {name}" for name, count in counts.items()))
    remarked = report.coverage.drop_nulls("remark")
    for remark, rows in remarked.group_by("remark", maintain_order=True):
        click.echo(visible(f"Epochs {list_intervals(rows['epoch'].to_list())}: {remark[0]}"))


def group_by_reason(absent: dict[str, str]) -> dict[str, list[str]]:
    """Return the tables of each reason."""
    groups: dict[str, list[str]] = {}
    for table, reason in absent.items():
        groups.setdefault(reason, []).append(table)
    return groups


def list_intervals(numbers: list[int]) -> str:
    """Return the intervals of *numbers* as text: ``1-5, 7``; of many, the first."""
    from beaconframes.endpoint.intervals import intervals_of

    intervals = intervals_of(numbers)
    texts = [f"{low}" if low == high else f"{low}-{high}" for low, high in intervals[:MAX_ROWS]]
    return ", ".join(texts) + (", ..." if len(intervals) > MAX_ROWS else "")
