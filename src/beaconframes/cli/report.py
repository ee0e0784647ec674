"""``beaconframes report``: how validators did, as a page, as JSON, or as a folder of pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from beaconframes.cli import output
from beaconframes.cli.argument_texts import is_file, parse_list
from beaconframes.cli.connection_options import connection_options, open_explorer
from beaconframes.cli.from_signature import command, list_arguments
from beaconframes.cli.rendering import list_lines, print_result
from beaconframes.cli.runner import current_state
from beaconframes.errors import QuotaSpent, UsageError
from beaconframes.reports import report as make_report
from beaconframes.reports.archive import INDEX, PERIODS, save_every
from beaconframes.reports.tables import select_problems
from beaconframes.validator_files import read_validators
from beaconframes.wall.png_file import check_ending

if TYPE_CHECKING:
    from beaconframes.reports import Report

FORMATS = {".html": "save", ".json": "save_json", ".ipynb": "to_notebook"}
"""What writes a file with each ending."""
TEXTS = {
    "since": "Start: an epoch, date, month, time or age. Default: 30d.",
    "until": "End, included. Default: the latest final epoch.",
    "groups": "CSV file with validator_index or pubkey, and group: groups to compare.",
    "prices": "CSV file with time and the price of 1 ETH.",
    "detail": "Load every epoch, or daily statistics: one request per validator.",
}
"""The help of arguments that have other forms in Python, or whose description there is long."""
MOST_PROBLEMS = 10
PROBLEM_COLUMNS = (
    "kind", "validator_index", "since", "until", "count", "cost_gwei", "avoidable",
)  # fmt: skip


@command(*connection_options(), arguments=list_arguments(make_report, ["validators"], texts=TEXTS))
def report(
    arguments: dict[str, Any],
    validators: str | None = None,
    *,
    out: Path | None = None,
    every: Annotated[str | None, click.Choice(PERIODS)] = None,
    overwrite: bool = False,
    **values: Any,
) -> None:
    """Report how validators did, as a page, as JSON or as a notebook.

    VALIDATORS are indices or public keys, such as 1,2,100-199, or a file with a list of them; -
    reads standard input. Without VALIDATORS, they are those of --groups. Without --out, the answer
    is printed.

    Parameters
    ----------
    out
        The file to write: .html, .json or .ipynb. With --every: a folder.
    every
        Write a page for each whole period and index.html. Run it again to add new ones.
    """
    check_output(out, every, overwrite=overwrite)
    if every is not None and "year" in arguments:
        raise UsageError("--every and --year exclude each other", hint="Leave one of them out")
    read_files(arguments, validators)
    with open_explorer(values) as explorer:

        def write(made: Report) -> None:
            write_report(made, out, explorer.requests, overwrite=overwrite)

        if out is not None and every is not None:

            def print_path(path: Path) -> None:
                click.echo(click.format_filename(path), err=True)

            paths = save_every(every, out, arguments, explorer, print_path)
            print_folder(out, paths)
            return
        try:
            write(make_report(**arguments, explorer=explorer))
        except QuotaSpent as error:
            if error.report is not None:
                current_state().incomplete = True
                write(error.report)
            raise


def read_files(arguments: dict[str, Any], validators: str | None) -> None:
    """Set the validators and groups of *arguments*, which files may have."""
    if validators is not None:
        arguments["validators"] = (
            read_validators(Path(validators))
            if is_file(validators)
            else parse_list("VALIDATORS", [validators])
        )
    if "groups" in arguments:
        arguments["groups"] = read_validators(arguments["groups"], needs_group=True)


def check_output(out: Path | None, every: str | None, *, overwrite: bool) -> None:
    """Check where the report goes, before any request."""
    if every is not None:
        if out is None:
            raise UsageError("--every needs --out with a folder", hint="Such as --out reports/")
    elif out is not None:
        check_ending(out, FORMATS)
        output.check_target(out, overwrite=overwrite)


def print_folder(folder: Path, paths: list[Path]) -> None:
    """Print the folder, the number of its reports, and the page that lists them."""
    noun = "report" if len(paths) == 1 else "reports"
    index = f", listed in {INDEX}" if paths else ""
    files = [path.name for path in paths]
    print_result(
        {"folder": str(folder), "files": files, "index": INDEX if paths else None},
        [f"{click.format_filename(folder)}: {len(paths):,} {noun}{index}"],
    )


def write_report(made: Report, out: Path | None, requests: int, *, overwrite: bool) -> None:
    """Write the report to its file, or print the answer and the problems to look at."""
    if out is not None:
        getattr(made, FORMATS[out.suffix.lower()])(out, overwrite=overwrite)
        facts = {"validators": made.frames["summary"]["validators"][0], "requests": requests}
        output.report_file(out, facts)
    elif current_state().as_json:
        facts = output.completeness_facts(current_state())
        print_result({**facts, **json.loads(made.to_json())}, [])
    else:
        lines = [*made.summarize()]
        problems = made.frames.get("problems")
        if problems is not None and (shown := select_problems(problems)).height:
            lines += ["", *list_lines(shown.select(PROBLEM_COLUMNS), MOST_PROBLEMS)]
        print_result({}, lines)
