"""``beaconframes export``: rows as datasets that others can cite and load."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from beaconframes import errors
from beaconframes.cli import asking, nouns, results, signals
from beaconframes.cli.frames import FILE
from beaconframes.cli.noun_group import Nouns
from beaconframes.cli.running import say, state
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from beaconframes.cli.nouns import Loader
    from beaconframes.exports import Export

PARTITIONS = ("day", "period", "validators", "none")
GOES_ON = "the same command goes on where it was"
YEAR = 60 * 24 * 365


class Minutes(click.FloatRange):
    """Minutes to wait: more than none, and no more than a year has."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number; what is none is neither too small nor too large."""
        found = float(super().convert(value, param, ctx))
        if math.isnan(found):
            self.fail(f"{value!r} is not a number of minutes.", param, ctx)
        return found


FOLLOW = click.Option(
    ["--follow"],
    type=Minutes(min=0, min_open=True, max=YEAR),
    metavar="MINUTES",
    help="Go on until Ctrl-C: every so many minutes, add what has become final since.",
)


def options(*, table: bool) -> list[click.Parameter]:
    """Return the target and what a dataset says about itself."""
    of_many = click.Option(["--table"], help="The only table to export.")
    return [
        click.Option(
            ["--out"],
            type=FILE,
            required=True,
            help="A folder for a dataset, or a file such as income.parquet.",
        ),
        click.Option(["--format"], help="parquet, csv, jsonl, arrow, duckdb or xlsx."),
        click.Option(["--overwrite"], is_flag=True, help="Replace the file if it is there."),
        click.Option(
            ["--by"],
            type=click.Choice(PARTITIONS),
            help="How a folder is divided; by day if it can.",
        ),
        *([of_many] if table else []),
        click.Option(["--name"], help="Name of the dataset."),
        click.Option(["--title"], help="Title of the dataset."),
        click.Option(["--creator", "creators"], multiple=True, help="Who made it; once for each."),
        click.Option(["--license"], help="Such as CC-BY-4.0."),
        click.Option(["--published-at"], help="Address where it is published."),
        click.Option(
            ["--raw"], is_flag=True, help="Leave text alone that a spreadsheet takes for formulas."
        ),
        click.Option(
            ["--wait"], is_flag=True, help="Wait while another process exports there just now."
        ),
        click.Option(["--json", "as_json"], is_flag=True, help="Write JSON, for machines."),
    ]


NAMES = tuple(option.name for option in options(table=True) if option.name)


def command(noun: str, loader: Loader) -> click.Command:
    """Return the command that exports what *loader* gives."""
    grows = [FOLLOW] if "until" in nouns.arguments(loader) else []
    return click.Command(
        noun,
        params=[*nouns.options(loader), *options(table=False), *grows, *asking.options()],
        help=f"Export: {nouns.summary(loader)}",
        callback=lambda **given: of_loader(loader, given),
    )


def of_loader(loader: Loader, given: dict[str, Any]) -> None:
    """Export what a loader gives."""
    from beaconframes.exports import export

    said = taken(given)
    signals.add(GOES_ON)
    target, as_json = said.pop("out"), said.pop("as_json")
    minutes = given.pop("follow", None)
    asked = nouns.values(loader, given)
    if minutes and "until" in asked:
        raise click.UsageError("--follow has no end: leave out --until")

    def round_of() -> Export:
        with asking.connected({**given}) as explorer:
            return export(loader, target, **said, **asked, explorer=explorer)

    tell(round_of(), as_json=as_json)
    while minutes:
        time.sleep(60 * minutes)
        try:
            done = round_of()
        except errors.BeaconframesError as error:
            if not error.retryable:
                raise
            say(f"{error}; asked again in {minutes:g} minutes")
            continue
        if done.added:
            tell(done, as_json=as_json)


def taken(given: dict[str, Any]) -> dict[str, Any]:
    """Take what `options` made out of *given*, as ``bf.export`` takes it.

    A file that is there is refused here: rounds that follow replace what the first one wrote.
    """
    from beaconframes.exports.targets import target_of

    said = {name: given.pop(name) for name in NAMES if name in given}
    said["url"] = said.pop("published_at")
    # Upwards is where the user wants it; a slash at the end says that it is a folder.
    text = os.fspath(said["out"])
    path = Path(text)
    whole = path.resolve() if path.is_dir() else path.parent.resolve() / path.name
    said["out"] = os.fspath(whole) + ("/" if text.endswith("/") else "")
    goal, overwrite = target_of(said["out"], said["format"]), said.pop("overwrite")
    if goal.single:
        results.unreplaced(goal.path, overwrite=overwrite)
    elif overwrite:
        raise UsageError(
            f"--overwrite replaces a file, and --out {text} is a dataset",
            hint="Leave --overwrite out to add to the dataset, or choose another folder",
        )
    by = said.pop("by")
    if by is not None:
        said["by"] = None if by == "none" else by
    return {name: value for name, value in said.items() if value not in (None, ())}


def tell(done: Export, *, as_json: bool) -> None:
    """Tell what an export came to; one with gaps is no success."""
    from beaconframes.cli.showing import write_json

    now = state()
    now.incomplete = now.incomplete or not done.complete
    if as_json:
        facts = {"tables": done.tables, "bytes": done.bytes, "added": done.added}
        facts |= {"kept": done.kept, "until": done.until, "unit": done.unit or None}
        facts |= {"gaps": done.gaps, "path": str(done.path)}
        write_json({"complete": now.complete, "rows": done.rows, **facts})
        return
    end = f", up to {done.unit} {done.until:,}" if done.unit and done.until is not None else ""
    click.echo(
        f"{click.format_filename(done.path)}: {done.rows:,} rows, "
        f"{done.added + done.kept:,} files ({done.added:,} new), {done.bytes:,} bytes{end}"
    )
    if not done.complete:
        say(gaps_of(done))


def gaps_of(done: Export) -> str:
    """Return what is said of gaps; a file has no manifest that would name them."""
    from beaconframes.fetch.completeness import NAMED_IN_A_MESSAGE, words

    if Path(done.path).is_dir():
        named = "named in the manifest; the same command asks for them again"
        return f"{len(done.gaps):,} gaps, {named}"
    named = "; ".join(map(words, done.gaps[:NAMED_IN_A_MESSAGE]))
    rest = len(done.gaps) - NAMED_IN_A_MESSAGE
    more = f"; and {rest:,} more, which --json names" if rest > 0 else ""
    return f"{len(done.gaps):,} gaps: {named}{more}"


@click.command("dataset", params=options(table=True))
@click.argument("folder", type=FILE)
def dataset(folder: Path, **given: Any) -> None:
    """Export all tables of the dataset in FOLDER: simulated, kept or exported."""
    from beaconframes.dataset import Dataset
    from beaconframes.exports import export

    said = taken(given)
    signals.add(GOES_ON)
    target, as_json = said.pop("out"), said.pop("as_json")
    if "table" in said:
        said["table"] = nouns.table(said["table"])
    tell(export(Dataset.open(folder), target, **said), as_json=as_json)


export = Nouns(
    name="export",
    build=command,
    pictures=False,
    commands={"dataset": dataset},
    help="""Export rows as a dataset to cite, or as one file.

    NOUN and its options are as for load; dataset exports a whole folder. Rows are written as they
    come, so that they need not fit into memory. The same command again goes on where it was cut
    short, or adds what has become final since.
    """,
)
