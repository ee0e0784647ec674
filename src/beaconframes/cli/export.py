"""``beaconframes export``: write rows as a dataset, or as one file."""

from __future__ import annotations

import math
import os
import time
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from beaconframes import errors
from beaconframes.cli import loader_options, output, signals
from beaconframes.cli.common_options import refuse_options
from beaconframes.cli.connection_options import connection_options, open_explorer
from beaconframes.cli.docstrings import describe
from beaconframes.cli.from_signature import Kind, command, list_arguments
from beaconframes.cli.loader_options import LoaderGroup, table_name_of
from beaconframes.cli.messages import print_message
from beaconframes.cli.rendering import print_object
from beaconframes.cli.runner import current_state

if TYPE_CHECKING:
    from beaconframes.cli.from_signature import Argument
    from beaconframes.cli.loader_options import Loader
    from beaconframes.exports import Export

PARTITIONS = ("day", "period", "validators", "none")
RESUME_HINT = "run the same command again to resume it"
MINUTES_PER_YEAR = 60 * 24 * 365
UNITS = (
    "Amounts stay exact, in gwei and wei, as the names of columns end; load and analyse can write "
    "ether."
)
NOT_OPTIONS = ("what", "storage_options", "explorer")
TEXTS = {
    "target": f"A folder for a dataset, or a file such as income.parquet. {UNITS}",
    "format": "parquet, csv, jsonl, arrow, or for one file xlsx.",
    "by": "Partition of a dataset; the default is day if the rows have a time.",
    "table": "Export only this table.",
    "creators": "Creator of the dataset; repeat it for each creator.",
}
"""The help of arguments that `bf.export` describes together, or with values of Python."""
FOLLOW = click.Option(
    ["--follow"],
    type=click.FloatRange(min=0, min_open=True, max=MINUTES_PER_YEAR),
    metavar="MINUTES",
    help="Repeat the export after this many minutes, until Ctrl-C, to add newly finalized rows.",
)


def parse_target(_option: str, text: str) -> str:
    """Return the absolute path of a target; a slash at the end means a folder."""
    if not text:
        return text  # the export refuses it; as a path it is the current folder
    path = Path(text)
    # The user may write .. in a path.
    resolved = path.resolve() if path.is_dir() else output.resolve_target(path)
    return os.fspath(resolved) + ("/" if text.endswith("/") else "")


@cache
def list_options(without: str) -> dict[str, Argument]:
    """Return the arguments of `bf.export` that become options, *without* one of them."""
    from beaconframes.exports import export as export_rows

    kinds = {
        "target": Kind(type=click.Path(), parse=parse_target, option="--out"),
        "by": Kind(type=click.Choice(PARTITIONS), parse=lambda _, by: None if by == "none" else by),
        "table": Kind("TEXT", lambda _option, table: table_name_of(table)),
        "creators": Kind(repeated=True, option="--creator"),
    }
    options = list_arguments(export_rows, [*NOT_OPTIONS, without], texts=TEXTS, kinds=kinds)
    options["by"] = replace(options["by"], default=None)
    # The url of a command is that of the explorer.
    options["url"] = replace(options["url"], name="published_at")
    return options


def build_command(name: str, loader: Loader) -> click.Command:
    """Return the command that exports the rows of *loader*."""
    from beaconframes.exports import export

    listed = loader_options.list_arguments(loader)

    @command(
        *([FOLLOW] if "until" in listed else []),
        *connection_options(),
        name=name,
        text=f"Export: {describe(loader)}",
        arguments=listed,
        chosen=list_options("table"),
    )
    def export_loader(arguments: dict[str, Any], chosen: dict[str, Any], **values: Any) -> None:
        minutes = values.pop("follow", None)
        if minutes and math.isnan(minutes):
            raise click.UsageError("--follow nan is not a number of minutes")
        if minutes:
            refuse_options(["until", "unfinalized"], "--follow", hint="Leave one of them out")

        def export_once() -> Export:
            with open_explorer({**values}) as explorer:
                return export(loader, **chosen, **arguments, explorer=explorer)

        signals.prepare_stop(RESUME_HINT)
        done = export_once()
        report_export(done)
        # The file of an earlier round is replaced.
        chosen["overwrite"] = Path(done.path).is_file()
        while minutes:
            time.sleep(60 * minutes)
            try:
                done = export_once()
            except errors.BeaconframesError as error:
                if not error.retryable:
                    raise
                print_message(f"{error}; retrying in {minutes:g} minutes")
                continue
            if done.added:
                report_export(done)

    return export_loader


def report_export(done: Export) -> None:
    """Print the result of an export; an export with gaps is no success."""
    state = current_state()
    state.incomplete = state.incomplete or not done.complete
    facts = asdict(done) | {"unit": done.unit or None, "path": str(done.path)}
    # Of a round of --follow; the exit code is that of all rounds.
    print_object({"complete": done.complete, "rows": done.rows, **facts}, done)
    if not done.complete and not state.as_json:
        print_message(summarize_gaps(done))


def summarize_gaps(done: Export) -> str:
    """Return a message about the gaps; only a dataset has a manifest that lists them."""
    import polars as pl

    from beaconframes.exports.result import NOT_FINAL
    from beaconframes.fetch.missing_report import describe_gaps

    listed = describe_gaps(pl.DataFrame(done.gaps, infer_schema_length=None, strict=False))
    if all(gap.get("reason") == NOT_FINAL for gap in done.gaps):
        hint = "Run the same command again later, or add --unfinalized"
        return f"rows were not exported: {listed}. {hint}"
    if Path(done.path).is_dir():
        listed = "listed in the manifest; the same command requests them again"
        return f"{len(done.gaps):,} gaps, {listed}"
    return f"{len(done.gaps):,} gaps: {listed}; --json lists all"


def build_dataset_command() -> click.Command:
    """Return the command that exports the tables of a dataset."""
    from beaconframes.dataset import Dataset
    from beaconframes.exports import export

    @command(name="dataset", chosen=list_options("unfinalized"))
    def export_dataset(folder: Path, chosen: dict[str, Any]) -> None:
        """Export all tables of a dataset.

        FOLDER is the folder of a simulation, a store or an export.
        """
        signals.prepare_stop(RESUME_HINT)
        report_export(export(Dataset.open(folder), **chosen))

    return export_dataset


export = LoaderGroup(
    name="export",
    build=build_command,
    others={"dataset": ("Export all tables of a dataset.", build_dataset_command)},
    help=f"""Export rows as a dataset, or as one file.

    LOADER and its options are those of load; dataset exports all tables of a folder. Rows are
    written in batches, so they may be larger than the memory. Run the same command again to resume
    an export, or to add newly finalized rows. {UNITS}
    """,
)
