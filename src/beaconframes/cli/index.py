"""``beaconframes index``: write the chain of a beacon node into a dataset."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import click

from beaconframes.beacon_node.connection import NodeConnection
from beaconframes.beacon_node.index.arguments import ALL_TABLES
from beaconframes.beacon_node.index.follower import follow as follow_chain
from beaconframes.beacon_node.index.indexing import index as index_chain
from beaconframes.beacon_node.index.verdicts import read_report
from beaconframes.beacon_node.node import choose_addresses
from beaconframes.cli import exit_codes, signals
from beaconframes.cli.connection_options import build_setting
from beaconframes.cli.from_signature import command, list_arguments
from beaconframes.cli.loader_options import table_name_of
from beaconframes.cli.messages import print_message, replace_arguments
from beaconframes.cli.rendering import list_lines, print_result
from beaconframes.cli.runner import current_state
from beaconframes.config import settings
from beaconframes.errors import UsageError
from beaconframes.intervals import format_numbers
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from beaconframes.beacon_node.index.indexing import IndexProgress
    from beaconframes.beacon_node.index.verdicts import IndexReport

RESUME_HINT = "the stored epochs are complete; run the same command again to continue"
TEXTS = {
    "tables": "Tables, separated by commas, or all. The default is all, but slot_attestations only "
    "on chains with up to 500,000 validators."
}
MAX_ROWS = 20
"""Unexplained epochs in the table on the terminal; --json lists all."""


NOT_OPTIONS = ("node", "folder", "execution", "executor", "on_epoch", "stop")
OPTIONS = list_arguments(index_chain, NOT_OPTIONS, texts=TEXTS)
# --follow has none.
OPTIONS["until"] = replace(OPTIONS["until"], default=None)


@command(build_setting("progress", click.Option), arguments=OPTIONS)
def index(
    *,
    node: Annotated[str | None, "URL"] = None,
    execution: Annotated[str | None, "URL"] = None,
    out: Path,
    arguments: dict[str, Any],
    follow: bool = False,
    check: bool = False,
    progress: bool | None,
) -> None:
    """Write the chain of a beacon node into a dataset.

    Load from it with --dataset, or serve it. Each epoch is compared with the balances, and stored
    in one commit. Run the same command again to continue, or to add newly final epochs. The command
    ends with status 1 if a change of balance is unexplained.

    Parameters
    ----------
    node
        Address of the beacon node. The list of processes shows the options, so put an address with
        credentials into BEACONFRAMES_NODE. [BEACONFRAMES_NODE]
    execution
        Address of the JSON-RPC of the execution node, for fees, execution blocks and deposits.
        [BEACONFRAMES_EXECUTION]
    out
        Folder of the dataset.
    follow
        Add each epoch as it becomes final, and record orphaned blocks, until Ctrl-C.
    check
        Report the epochs of the dataset that are unexplained. Without --node, no request is sent.
    """
    if check and node is None:
        report = read_report(out)
        print_report(report, {}, {})
    else:
        addresses = choose_addresses(node, execution)
        if follow and "until" in arguments:
            raise UsageError("--follow and --until exclude each other", hint="Use one of them")
        if names := arguments.get("tables"):
            is_all = names == [ALL_TABLES]
            arguments["tables"] = ALL_TABLES if is_all else [*map(table_name_of, names)]
        with settings(**({} if progress is None else {"progress": progress})):
            report = write_index(NodeConnection(*addresses), out, arguments, follow=follow)
    if not report.is_explained:
        click.get_current_context().exit(exit_codes.FAILURE)


def write_index(
    connection: NodeConnection, out: Path, arguments: dict[str, Any], *, follow: bool
) -> IndexReport:
    """Index the chosen epochs of a node, and print and return the report."""
    stored: list[int] = []
    prints_epochs = follow and not current_state().as_json

    def count(progress: IndexProgress) -> None:
        stored.append(progress.epoch)
        if prints_epochs and progress.done == progress.total:
            click.echo(f"Epoch {progress.epoch:,} is stored")

    signals.prepare_stop(RESUME_HINT, has_report=True)
    with closing(connection):
        with suppress(KeyboardInterrupt):
            (follow_chain if follow else index_chain)(connection, out, **arguments, on_epoch=count)
        if signals.is_stopped() and not stored:
            raise KeyboardInterrupt
        report = read_report(out)
        facts = {"added_epochs": len(stored), "requests": connection.request_count}
        print_report(report, facts, connection.capabilities.absent)
    if signals.is_stopped():
        raise KeyboardInterrupt
    return report


def print_report(
    report: IndexReport, facts: dict[str, int], absent: Mapping[str, list[str]]
) -> None:
    """Print what the index has, what it has not and why, and what is unexplained."""
    options = current_state().options
    absent = {replace_arguments(reason, options): names for reason, names in absent.items()}
    counts = {name: report.count(name) for name in ("explained", "unexplained", "unverified")}
    lines = []
    if facts:
        lines.append(f"{facts['added_epochs']:,} epochs added with {facts['requests']:,} requests")
    lines += [f"Not available: {', '.join(names)}: {reason}" for reason, names in absent.items()]
    if report.left_out:
        large = ",".join(report.left_out)
        lines.append(f"Left out because of its size: {large}. --tables {large} adds it")
    lines = [*map(visible, lines), *report.summarize()]
    if not report.is_explained:
        changes = report.summarize_changes()
        lines += list_lines(changes, MAX_ROWS)
    print_result(
        {
            "dataset": str(report.path),
            "chain": report.chain_name,
            "epochs": [list(interval) for interval in report.epochs],
            **counts,
            "rows": report.rows,
            "bytes": report.bytes,
            "tables": list(report.tables),
            "left_out": list(report.left_out),
            "remarks": dict(report.coverage.select("epoch", "remark").drop_nulls().iter_rows()),
            **facts,
            "absent": {name: reason for reason, names in absent.items() for name in names},
        },
        lines,
        report.changes,
    )
    if not report.is_explained:
        print_message(
            f"{counts['unexplained']:,} epochs are unexplained: balances of "
            f"{report.changes['validator_index'].n_unique():,} validators changed by "
            f"{changes['unexplained_gwei'].sum():,} gwei more or less than their income in epochs "
            f"{format_numbers(changes['epoch'], MAX_ROWS)}"
        )
