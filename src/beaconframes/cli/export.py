"""``beaconframes export``: write rows as a dataset, or as one file."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from beaconframes import errors
from beaconframes.cli import output, signals
from beaconframes.cli.common_options import FILE, json_option, overwrite_option
from beaconframes.cli.connection_options import connection_options, open_explorer
from beaconframes.cli.docstrings import describe
from beaconframes.cli.loader_group import LoaderGroup
from beaconframes.cli.loader_options import (
    list_arguments,
    loader_options,
    pop_arguments,
    table_name_of,
)
from beaconframes.cli.messages import print_message
from beaconframes.cli.rendering import print_json
from beaconframes.cli.runner import current_state
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beaconframes.cli.loader_options import Loader
    from beaconframes.exports import Export

PARTITIONS = ("day", "period", "validators", "none")
RESUME_HINT = "run the same command again to resume it"
MINUTES_PER_YEAR = 60 * 24 * 365
UNITS = (
    "Amounts stay exact, in gwei and wei, as the names of columns end; load and analyse can write "
    "ether."
)


class Minutes(click.FloatRange):
    """A number of minutes above 0, of at most a year."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number; NaN passes every comparison of a range, so it is refused here."""
        minutes = float(super().convert(value, param, ctx))
        if math.isnan(minutes):
            self.fail(f"{value!r} is not a number of minutes.", param, ctx)
        return minutes


FOLLOW = click.Option(
    ["--follow"],
    type=Minutes(min=0, min_open=True, max=MINUTES_PER_YEAR),
    metavar="MINUTES",
    help="Repeat the export after this many minutes, until Ctrl-C, to add newly finalized rows.",
)


UNFINALIZED = click.Option(
    ["--unfinalized"],
    is_flag=True,
    help="Export rows that are not final as well; the column finalized marks them.",
)


def export_options(*, table: bool) -> list[click.Parameter]:
    """Return the options for the target and for the metadata of a dataset."""
    table_option = click.Option(["--table"], help="Export only this table.")
    return [
        click.Option(
            ["--out"],
            type=FILE,
            required=True,
            help="A folder for a dataset, or a file such as income.parquet. " + UNITS,
        ),
        click.Option(["--format"], help="parquet, csv, jsonl, arrow, duckdb or xlsx."),
        overwrite_option(),
        click.Option(
            ["--by"],
            type=click.Choice(PARTITIONS),
            help="Partition of a dataset; the default is day if the rows have a time.",
        ),
        *([table_option] if table else [UNFINALIZED]),
        click.Option(["--name"], help="Name of the dataset."),
        click.Option(["--title"], help="Title of the dataset."),
        click.Option(
            ["--creator", "creators"],
            multiple=True,
            help="Creator of the dataset; repeat it for each creator.",
        ),
        click.Option(["--license"], help="SPDX license, such as CC-BY-4.0."),
        click.Option(["--published-at"], help="Address where the dataset is published."),
        output.raw_option(),
        click.Option(
            ["--wait"], is_flag=True, help="Wait for another process that exports to this folder."
        ),
        json_option(),
    ]


NAMES = tuple(option.name for option in [*export_options(table=True), UNFINALIZED] if option.name)


def build_command(name: str, loader: Loader) -> click.Command:
    """Return the command that exports the rows of *loader*."""
    follow = [FOLLOW] if "until" in list_arguments(loader) else []
    return click.Command(
        name,
        params=[
            *loader_options(loader),
            *export_options(table=False),
            *follow,
            *connection_options(),
        ],
        help=f"Export: {describe(loader)}",
        callback=lambda **values: export_loader(loader, values),
    )


def export_loader(loader: Loader, values: dict[str, Any]) -> None:
    """Export the rows of a loader, once or repeatedly."""
    from beaconframes.exports import export

    chosen = pop_export_options(values)
    signals.set_hint(RESUME_HINT)
    target, as_json = chosen.pop("out"), chosen.pop("as_json")
    minutes = values.pop("follow", None)
    arguments = pop_arguments(loader, values)
    if minutes and "until" in arguments:
        raise click.UsageError("--follow and --until exclude each other")
    if minutes and chosen["unfinalized"]:
        raise click.UsageError("--follow and --unfinalized exclude each other")

    def export_once() -> Export:
        with open_explorer({**values}) as explorer:
            return export(loader, target, **chosen, **arguments, explorer=explorer)

    report_export(export_once(), as_json=as_json)
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
            report_export(done, as_json=as_json)


def pop_export_options(values: dict[str, Any]) -> dict[str, Any]:
    """Remove the export options from *values*, and return them as arguments of ``bf.export``.

    An existing file is refused here, because later rounds of --follow replace their own file.
    """
    from beaconframes.exports.targets import parse_target

    chosen = {name: values.pop(name) for name in NAMES if name in values}
    chosen["url"] = chosen.pop("published_at")
    # The user may write .. in a path; a slash at the end means a folder.
    text = os.fspath(chosen["out"])
    path = Path(text)
    resolved = path.resolve() if path.is_dir() else output.resolve_target(path)
    chosen["out"] = os.fspath(resolved) + ("/" if text.endswith("/") else "")
    target, overwrite = parse_target(chosen["out"], chosen["format"]), chosen["overwrite"]
    if target.is_file:
        output.check_overwrite(target.path, overwrite=overwrite)
        chosen["overwrite"] = True
    elif overwrite:
        raise UsageError(
            f"--overwrite replaces a file, and --out {text} is a dataset",
            hint="Leave --overwrite out to add to the dataset, or choose another folder",
        )
    by = chosen.pop("by")
    if by is not None:
        chosen["by"] = None if by == "none" else by
    return {name: value for name, value in chosen.items() if value not in (None, ())}


def report_export(done: Export, *, as_json: bool) -> None:
    """Print the result of an export; an export with gaps is no success."""
    state = current_state()
    state.incomplete = state.incomplete or not done.complete
    if as_json:
        facts = {"tables": done.tables, "bytes": done.bytes, "added": done.added}
        facts |= {"unchanged": done.unchanged, "until": done.until, "unit": done.unit or None}
        facts |= {"gaps": done.gaps, "path": str(done.path)}
        print_json({"complete": state.is_complete, "rows": done.rows, **facts})
        return
    end = f", up to {done.unit} {done.until:,}" if done.unit and done.until is not None else ""
    count = done.added + done.unchanged
    click.echo(
        f"{click.format_filename(done.path)}: {done.rows:,} rows, "
        f"{count:,} file{'' if count == 1 else 's'} ({done.added:,} new), {done.bytes:,} bytes{end}"
    )
    if not done.complete:
        print_message(describe_gaps(done))


def describe_gaps(done: Export) -> str:
    """Return a message about the gaps; only a dataset has a manifest that lists them."""
    from beaconframes.exports.result import NOT_FINAL

    if all(gap.get("reason") == NOT_FINAL for gap in done.gaps):
        late = [{**gap, "reason": None} for gap in done.gaps]
        hint = "Run the same command again later, or add --unfinalized"
        return f"rows that are not final yet were not exported: {list_gaps(late)}. {hint}"
    if Path(done.path).is_dir():
        listed = "listed in the manifest; the same command requests them again"
        return f"{len(done.gaps):,} gaps, {listed}"
    return f"{len(done.gaps):,} gaps: {list_gaps(done.gaps)}"


def list_gaps(gaps: Sequence[dict[str, Any]]) -> str:
    """Return the first gaps as text."""
    from beaconframes.fetch.missing_report import MAX_GAPS_IN_MESSAGE, describe_gap

    listed = "; ".join(map(describe_gap, gaps[:MAX_GAPS_IN_MESSAGE]))
    rest = len(gaps) - MAX_GAPS_IN_MESSAGE
    return listed + (f"; and {rest:,} more, which --json lists" if rest > 0 else "")


@click.command("dataset", params=export_options(table=True))
@click.argument("folder", type=FILE)
def dataset(folder: Path, **values: Any) -> None:
    """Export all tables of a dataset.

    FOLDER is the folder of a simulation, a store or an export.
    """
    from beaconframes.dataset import Dataset
    from beaconframes.exports import export

    chosen = pop_export_options(values)
    signals.set_hint(RESUME_HINT)
    target, as_json = chosen.pop("out"), chosen.pop("as_json")
    if "table" in chosen:
        chosen["table"] = table_name_of(chosen["table"])
    report_export(export(Dataset.open(folder), target, **chosen), as_json=as_json)


export = LoaderGroup(
    name="export",
    build=build_command,
    images=False,
    others={"dataset": ("Export all tables of a dataset.", lambda: dataset)},
    help=f"""Export rows as a dataset, or as one file.

    LOADER and its options are those of load; dataset exports all tables of a folder. Rows are
    written in batches, so they may be larger than the memory. Run the same command again to resume
    an export, or to add newly finalized rows. {UNITS}
    """,
)
