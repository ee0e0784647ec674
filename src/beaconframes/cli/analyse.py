"""``beaconframes analyse``: call a function of `analysis` on loaded rows, or on files."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, cast

import click

from beaconframes.calendar import local_range
from beaconframes.cli import analysis_results, chart_input, from_signature, output
from beaconframes.cli import connection_options as connection
from beaconframes.cli.analyses import get_function, list_analyses
from beaconframes.cli.analysis_frames import (
    RANGE,
    build_call,
    build_empty,
    find_validators,
    parse_inputs,
    read_frame,
)
from beaconframes.cli.common_options import SuggestingGroup, add_common_options, typed_options
from beaconframes.cli.docstrings import describe
from beaconframes.cli.loader_options import loader_options, pop_arguments
from beaconframes.cli.messages import print_message
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from beaconframes.cli.analyses import Analysis
    from beaconframes.cli.from_signature import Argument

HELP = {
    "every": "Time of one row.",
    "by": "Group columns, separated by commas.",
    "tz": "Time zone of the days, and of dates in --since and --until, such as Europe/Berlin.",
}
"""The help of options whose description in Python is too long, or missing."""
SUBJECT_LOADER = "income-history"
"""A loader with --validators, --since and --until."""


class AnalysisGroup(SuggestingGroup):
    """A group with one command for each function of `analysis`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the functions."""
        return list(list_analyses())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Build the command of a function."""
        name = cmd_name.replace("_", "-")
        return add_common_options(build_command(name)) if name in list_analyses() else None


def get_source(name: str) -> Callable[..., Any]:
    """Return the function that takes the frames and the options of an analysis."""
    return get_function(list_analyses()[name].source or name)


def list_options(name: str) -> dict[str, Argument]:
    """Return the arguments of an analysis that are neither frames nor the chain."""
    return from_signature.list_arguments(get_source(name), ("chain", "validators"), texts=HELP)


def build_command(name: str) -> click.Command:
    """Return the command of an analysis."""
    analysis = list_analyses()[name]
    others = analysis.frames[1:]
    return click.Command(
        name,
        params=[
            click.Argument(["file"], required=False, type=str),
            click.Option(
                ["--input", "inputs"],
                multiple=True,
                metavar="[NAME=]FILE",
                help="Read a frame from a file instead of loading it. "
                f"FILE, or --input without NAME: {analysis.first}. "
                f"Other names: {', '.join(others) or 'none'}.",
            ),
            *build_with_option(analysis),
            *build_loading_options(name),
            *(option.build() for key, option in list_options(name).items() if key not in RANGE),
            *(analysis_results.build_tax_options() if name == "ledger" else ()),
            *(analysis_results.build_filters() if "problems" in (name, analysis.source) else ()),
            click.Option(
                ["--strict"], is_flag=True, help="Fail if any requested rows are missing."
            ),
            *output.output_options(),
            *connection.connection_options(),
        ],
        help=describe_analysis(name),
        callback=lambda **values: run_analysis(name, values),
    )


def build_loading_options(name: str) -> list[click.Parameter]:
    """Return --validators, --since and --until, as the loader of the first frame has them."""
    analysis = list_analyses()[name]
    names = {*RANGE}
    if analysis.takes_validators or "validators" in inspect.signature(get_source(name)).parameters:
        names.add("validators")
    loaders = (SUBJECT_LOADER, analysis.loaders[analysis.first])
    every = [o for loader in loaders for o in loader_options(chart_input.require_loader(loader))]
    options = {option.name: option for option in every if option.name in names}
    for option in options.values():
        option.required = False
    return list(options.values())


def build_with_option(analysis: Analysis) -> list[click.Option]:
    """Return the option to load optional frames, if there are any."""
    if not analysis.optional:
        return []
    text = "Also load this frame; repeat it for each."
    kind = click.Choice(list(analysis.optional))
    return [click.Option(["--with", "wanted"], type=kind, multiple=True, help=text)]


def describe_analysis(name: str) -> str:
    """Return the help text: the beginning of the docstring, and the frames."""
    text = describe(get_function(name), list_options(name))
    rows = [f"{frame} (load {loader})" for frame, loader in list_analyses()[name].loaders.items()]
    rows += [f"{frame} (a file)" for frame in list_analyses()[name].files]
    return f"{text}\n\nFrames: {', '.join(rows)}."


def run_analysis(name: str, values: dict[str, Any]) -> None:
    """Read or load the frames, call the function, and write its result."""
    analysis, function = list_analyses()[name], get_source(name)
    chosen = output.pop_output_options(values)
    taxes, filters = analysis_results.pop_taxes(values), analysis_results.pop_filters(values)
    strict = {"strict": True} if values.pop("strict") else {}
    file, inputs = values.pop("file"), values.pop("inputs")
    files = parse_inputs(analysis, [file, *inputs] if file else inputs)
    wanted = [*analysis.loaded, *values.pop("wanted", ())]
    values.setdefault("validators", ())
    given = pop_arguments(chart_input.require_loader(SUBJECT_LOADER), values)
    options = list_options(name)
    own = {key: option for key, option in options.items() if key not in RANGE}
    arguments = from_signature.pop_arguments(own, values)
    parameters = inspect.signature(function).parameters
    if "validators" in given.keys() & parameters.keys() - {*analysis.frames}:
        arguments["validators"] = given["validators"]
    if analysis.first in files:
        arguments |= parse_range(analysis, given, options)
    else:
        given |= local_range(
            **{key: given.get(key) for key in RANGE}, tz=arguments.get("tz", "UTC")
        )
    frames = {
        frame: read_frame(file, frame, analysis.loaders.get(frame), arguments)
        for frame, file in files.items()
    }
    facts: dict[str, Any] = {"analysis": name, "requests": 0}
    if absent := [frame for frame in wanted if frame not in files]:
        if analysis.takes_validators:
            find_validators(given, frames.get(analysis.first))
        # Without rows, wrong columns and other arguments are found before any request.
        empty = build_empty(analysis, frames, absent)
        output.select_output(compute(name, empty, arguments, taxes, "mainnet"), chosen)
        with connection.open_explorer(values) as explorer:
            for frame in absent:
                call = build_call(analysis, frame, given, frames, explorer)
                loader = chart_input.require_loader(analysis.loaders[frame])
                frames[frame] = loader(**call, **strict, explorer=explorer)
            if name == "upcoming-duties" and "epoch" not in arguments:
                arguments["epoch"] = explorer.chain_head.latest("epoch")
            chain: Any = explorer.chain
            facts["requests"] = explorer.requests
    else:
        check_offline()
        chain = values["chain"] or "mainnet"
    print_left_out(name, analysis, frames)
    result = analysis_results.filter_rows(compute(name, frames, arguments, taxes, chain), filters)
    if taxes:
        # No text of such rows is from the chain, and tax tools import no apostrophes.
        chosen |= {"raw": chosen["raw"] or taxes["tool"] is not None}
    output.write_rows(result, chosen, facts)
    analysis_results.end_with_code(result, filters)


def compute(
    name: str,
    frames: Mapping[str, pl.DataFrame],
    arguments: Mapping[str, Any],
    taxes: Mapping[str, Any],
    chain: Any,
) -> pl.DataFrame:
    """Call the function of an analysis; convert a ledger for taxes."""
    if source := list_analyses()[name].source:
        own = {frame: frames[frame] for frame in frames.keys() - {*list_analyses()[source].frames}}
        others = {frame: rows for frame, rows in frames.items() if frame not in own}
        rows = compute(source, others, arguments, taxes, chain)
        return cast("pl.DataFrame", get_function(name)(rows, **own))
    function = get_function(name)
    more = {"chain": chain} if "chain" in inspect.signature(function).parameters else {}
    result: pl.DataFrame = function(**frames, **arguments, **more)
    if not taxes:
        return result
    price = arguments["price"] if "prices" in frames else None
    return analysis_results.convert_ledger(result, taxes, price=price, tz=arguments["tz"])


def print_left_out(name: str, analysis: Analysis, frames: Mapping[str, Any]) -> None:
    """Print the options for duties that are not loaded: no rows would mean that there are none."""
    left_out = sorted(analysis.optional.keys() - frames.keys())
    if name == "upcoming-duties" and left_out:
        kinds = {"committees": "sync committees", "duties": "proposals"}
        listed = " and ".join(kinds[frame] for frame in left_out)
        options = " ".join(f"--with {frame}" for frame in left_out)
        print_message(f"{listed} are listed with {options}")


def parse_range(
    analysis: Analysis, given: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, int]:
    """Return --since and --until of an analysis whose first frame is a file."""
    epochs = {key: given[key] for key in RANGE if key in given}
    for key, value in epochs.items():
        if key not in options:
            raise UsageError(
                f"--{key} and --input exclude each other",
                hint=f"All rows of {analysis.first} come from the file",
            )
        if not isinstance(value, int):
            raise UsageError(f"--{key} {value!r} is not an epoch", hint="A file needs a number")
    return epochs


def check_offline() -> None:
    """Refuse options of an explorer where all frames come from files."""
    if wrong := [o for o in connection.NAMES if o != "chain" and o in typed_options()]:
        raise UsageError(
            f"--{wrong[0].replace('_', '-')} and --input exclude each other",
            hint="All frames come from files",
        )


analyse = AnalysisGroup(
    name="analyse",
    subcommand_metavar="ANALYSIS [OPTIONS]",
    no_args_is_help=True,
    callback=lambda **_: None,
    help="""Analyse loaded rows, or rows in files.

    Write analyse income --input income.parquet --every day --unit eth, or use --validators and
    --since to load the rows.
    """,
)
