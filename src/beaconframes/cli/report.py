"""``beaconframes report``: how validators did, as a page, as JSON, or as a folder of pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli import output
from beaconframes.cli.argument_texts import check_validator, is_file, parse_list, parse_time
from beaconframes.cli.common_options import FILE, json_option, overwrite_option, pop_options
from beaconframes.cli.connection_options import connection_options, open_explorer
from beaconframes.cli.messages import print_warning
from beaconframes.cli.rendering import print_json, print_table
from beaconframes.errors import QuotaSpent, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from beaconframes.client import Explorer
    from beaconframes.reports import Report

FORMATS = {".html": "save", ".json": "save_json", ".ipynb": "to_notebook"}
"""What writes a file with each ending."""
SELECTION = ("validators", "since", "until", "year", "groups", "prices", "detail", "price", "tz")
MOST_PROBLEMS = 10


def selection_options() -> list[click.Parameter]:
    """Return the options that select what a report is about."""
    return [
        click.Argument(["validators"], required=False),
        click.Option(["--since"], help="Start: an epoch, date, month, time or age. Default: 30d."),
        click.Option(["--until"], help="End, included. Default: the latest final epoch."),
        click.Option(["--year"], help="A calendar year in --tz, instead of --since and --until."),
        click.Option(
            ["--tz"], default="UTC",
            help="Time zone of the days, also in --since and --until, such as Europe/Berlin.",
        ),
        click.Option(
            ["--groups"], type=FILE,
            help="CSV file with validator_index or pubkey, and group: groups to compare.",
        ),
        click.Option(["--prices"], type=FILE, help="CSV file with time and the price of 1 ETH."),
        click.Option(
            ["--price"], default="price", show_default=True,
            help="Column of the prices, named like the currency, such as eur.",
        ),
        click.Option(
            ["--detail"], type=click.Choice(["auto", "epochs", "days"]), default="auto",
            help="Load every epoch, or daily statistics: one request per validator.",
        ),
    ]  # fmt: skip


@click.command(
    params=[
        *selection_options(),
        click.Option(["--interactive"], is_flag=True, help="Charts that can be zoomed, in plotly."),
        click.Option(
            ["--out"], type=FILE,
            help="The file to write: .html, .json or .ipynb. With --every: a folder.",
        ),
        click.Option(
            ["--every"], type=click.Choice(["1d", "1w", "1mo"]),
            help="Write a page for each whole period and index.html. Run it again to add new ones.",
        ),
        overwrite_option(),
        json_option(),
        *connection_options(),
    ]
)  # fmt: skip
def report(**values: Any) -> None:
    """Report how validators did, as a page, as JSON or as a notebook.

    VALIDATORS are indices or public keys, such as 1,2,100-199, or a file with a list of them; -
    reads standard input. Without VALIDATORS, they are those of --groups. Without --out, the answer
    is printed.
    """
    names = (*SELECTION, "interactive")
    chosen = pop_options(values, (*names, "out", "every", "overwrite", "as_json"))
    _check_output(chosen)
    arguments = read_arguments(chosen, names)
    with open_explorer(values) as explorer:
        if chosen["every"] is not None:
            paths = _save_every(arguments, chosen, explorer)
            _report_folder(chosen["out"], paths, as_json=chosen["as_json"])
            return
        try:
            made = _make(arguments, explorer)
        except QuotaSpent as error:
            if error.report is not None:
                _write(error.report, chosen, explorer.requests)
            raise
        requests = explorer.requests
    _write(made, chosen, requests)


def read_arguments(chosen: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of `beaconframes.report` from options, with the rows of their files."""
    from beaconframes.reports.prices import read_prices
    from beaconframes.validator_files import read_validators

    arguments = {name: chosen[name] for name in names}
    given = [name for name in ("since", "until") if chosen[name] is not None]
    arguments |= {name: parse_time(f"--{name}", chosen[name]) for name in given}
    if chosen["validators"] is not None:
        text = chosen["validators"]
        arguments["validators"] = (
            read_validators(Path(text))
            if is_file(text)
            else parse_list("VALIDATORS", [text], check_validator)
        )
    if chosen["groups"] is not None:
        arguments["groups"] = read_validators(chosen["groups"], needs_group=True)
    arguments["prices"] = read_prices(chosen["prices"], chosen["price"])
    return arguments


def _check_output(chosen: dict[str, Any]) -> None:
    """Check where the report goes, before any request."""
    out: Path | None = chosen["out"]
    if chosen["every"] is not None:
        if out is None:
            raise UsageError("--every needs --out with a folder", hint="Such as --out reports/")
        if chosen["year"] is not None:
            raise UsageError("--every and --year exclude each other", hint="Leave one of them out")
        return
    if out is None:
        return
    if out.suffix.lower() not in FORMATS:
        raise UsageError(
            f"--out {out} has no ending of a report", hint=f"Use one of {', '.join(FORMATS)}"
        )
    output.check_target(out, overwrite=chosen["overwrite"])


def _make(arguments: dict[str, Any], explorer: Explorer) -> Report:
    from beaconframes.config import settings
    from beaconframes.reports import report as make_report

    with settings(frame="polars"):
        return make_report(**arguments, explorer=explorer)


def _save_every(
    arguments: dict[str, Any], chosen: dict[str, Any], explorer: Explorer
) -> list[Path]:
    """Write a page for each period that has none yet."""
    from beaconframes.reports.archive import (
        check_folder,
        find_final_range,
        list_periods,
        save_reports,
    )

    stated = _describe_arguments(arguments) | {"the chain": explorer.chain.name}
    check_folder(chosen["out"], stated)
    tz = arguments["tz"]
    first, last = find_final_range(explorer, arguments["since"], arguments["until"], tz)
    periods = list_periods(chosen["every"], first, last, tz)
    if not periods:
        print_warning(
            f"there is no whole period of {chosen['every']} from {first:%Y-%m-%d} to "
            f"{last:%Y-%m-%d}. Give an earlier --since, or a shorter --every"
        )

    def make(since: date, until: date) -> Report:
        return _make(arguments | {"since": since, "until": until}, explorer)

    def report_progress(path: Path) -> None:
        click.echo(click.format_filename(path), err=True)

    return save_reports(make, chosen["out"], periods, report_progress, stated)


def _describe_arguments(arguments: dict[str, Any]) -> dict[str, str]:
    """Return the arguments that all reports of a folder have in common, as texts by option."""
    from beaconframes.endpoint.identifiers import list_validators
    from beaconframes.reports.archive import describe_items

    none = "not given"
    validators, groups = arguments["validators"], arguments["groups"]
    if validators is not None:
        validators = list_validators(validators) or validators
    if groups is not None:
        groups = zip(list_validators(groups), groups["group"], strict=True)
    return {
        "VALIDATORS": none if validators is None else describe_items(validators, "validator"),
        "--groups": none if groups is None else describe_items(groups, "row"),
        "--prices": none if arguments["prices"] is None else f"in {arguments['price']}",
        "--tz": arguments["tz"],
        "--detail": arguments["detail"],
    }


def _report_file(out: Path, made: Report, requests: int, *, as_json: bool) -> None:
    """Print the name and the size of a written file."""
    size = out.stat().st_size
    if as_json:
        count = made.frames["summary"]["validators"][0]
        print_json({"validators": count, "requests": requests, "file": str(out), "bytes": size})
    else:
        click.echo(f"{click.format_filename(out)}: {size:,} bytes")


def _report_folder(folder: Path, paths: list[Path], *, as_json: bool) -> None:
    """Print the folder, the number of its reports, and the page that lists them."""
    from beaconframes.reports.archive import INDEX

    if as_json:
        files = [path.name for path in paths]
        print_json({"folder": str(folder), "files": files, "index": INDEX if paths else None})
    else:
        noun = "report" if len(paths) == 1 else "reports"
        index = f", listed in {INDEX}" if paths else ""
        click.echo(f"{click.format_filename(folder)}: {len(paths):,} {noun}{index}")


def _write(made: Report, chosen: dict[str, Any], requests: int) -> None:
    """Write the report to its file, or print the answer and the problems to look at."""
    from beaconframes.reports.tables import select_problems

    out: Path | None = chosen["out"]
    if out is not None:
        getattr(made, FORMATS[out.suffix.lower()])(out, overwrite=chosen["overwrite"])
        _report_file(out, made, requests, as_json=chosen["as_json"])
    elif chosen["as_json"]:
        click.echo(made.to_json())
    else:
        for line in made.summarize():
            click.echo(line)
        if "problems" not in made.frames:
            return
        problems = select_problems(made.frames["problems"])
        if problems.height:
            columns = (
                "kind",
                "validator_index",
                "since",
                "until",
                "count",
                "cost_gwei",
                "avoidable",
            )
            click.echo("")
            print_table(problems.select(columns), MOST_PROBLEMS)
