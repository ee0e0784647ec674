"""``beaconframes analyse``: call a function of `analysis` on loaded rows, or on files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import click

from beaconframes.cli import analysis_results, chart_input, output
from beaconframes.cli import connection_options as connection
from beaconframes.cli.analyses import RANGE, Analysis, get_function, list_analyses
from beaconframes.cli.analysis_frames import (
    build_call,
    build_empty,
    find_validators,
    parse_inputs,
    read_frame,
)
from beaconframes.cli.common_options import BuiltGroup, typed_options
from beaconframes.cli.docstrings import describe
from beaconframes.cli.from_signature import list_arguments, pop_arguments
from beaconframes.cli.loader_options import loader_options
from beaconframes.cli.loader_options import pop_arguments as pop_loader_arguments
from beaconframes.cli.messages import print_message
from beaconframes.errors import UsageError
from beaconframes.time_range import local_range

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from beaconframes.cli.from_signature import Argument

SUBJECT_LOADER = "income-history"
"""A loader with --validators, --since and --until."""


def list_step_options(name: str) -> dict[str, Argument]:
    """Return the options of what follows an analysis, if anything does."""
    step = analysis_results.STEPS.get(name)
    return list_arguments(step, ["rows", "price", "tz"]) if step else {}


def build_command(name: str) -> click.Command:
    """Return the command of an analysis."""
    analysis = list_analyses()[name]
    has_problems = "problems" in (name, analysis.source)
    options = [*analysis.own_options.values(), *list_step_options(name).values()]
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
                f"Other names: {', '.join(analysis.frames[1:]) or 'none'}.",
            ),
            *build_with_option(analysis),
            *build_loading_options(analysis),
            *(option.build() for option in options),
            *([analysis_results.EXIT_CODE] if has_problems else []),
            click.Option(
                ["--strict"], is_flag=True, help="Fail if any requested rows are missing."
            ),
            *output.output_options(),
            *connection.connection_options(),
        ],
        help=describe_analysis(analysis),
        callback=lambda **values: run_analysis(analysis, values),
    )


def build_loading_options(analysis: Analysis) -> list[click.Parameter]:
    """Return --validators, --since and --until, as the loader of the first frame has them."""
    names = {*RANGE}
    if analysis.takes_validators or "validators" in analysis.parameters:
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


def describe_analysis(analysis: Analysis) -> str:
    """Return the help text: the beginning of the docstring, and the frames."""
    text = describe(get_function(analysis.name), analysis.options)
    rows = [f"{frame} (load {loader})" for frame, loader in analysis.loaders.items()]
    rows += [f"{frame} (a file)" for frame in analysis.files]
    return f"{text}\n\nFrames: {', '.join(rows)}."


def run_analysis(analysis: Analysis, values: dict[str, Any]) -> None:
    """Read or load the frames, call the function, and write its result."""
    chosen = output.Output.pop(values)
    step = pop_arguments(list_step_options(analysis.name), values)
    ends_with_code = values.pop("exit_code", False)
    strict = {"strict": True} if values.pop("strict") else {}
    file, inputs = values.pop("file"), values.pop("inputs")
    files = parse_inputs(analysis, [file, *inputs] if file else inputs)
    wanted = [*analysis.loaded, *values.pop("wanted", ())]
    values.setdefault("validators", ())
    given = pop_loader_arguments(chart_input.require_loader(SUBJECT_LOADER), values)
    arguments = pop_arguments(analysis.own_options, values)
    if "validators" in given.keys() & analysis.parameters.keys() - {*analysis.frames}:
        arguments["validators"] = given["validators"]
    if analysis.first in files:
        arguments |= parse_range(analysis, given)
    else:
        given |= local_range(
            **{key: given.get(key) for key in RANGE}, tz=arguments.get("tz", "UTC")
        )
    frames = {
        frame: read_frame(file, frame, analysis.loaders.get(frame), arguments)
        for frame, file in files.items()
    }
    facts: dict[str, Any] = {"analysis": analysis.name, "requests": 0}
    if absent := [frame for frame in wanted if frame not in files]:
        if analysis.takes_validators:
            find_validators(given, frames.get(analysis.first))
        # Without rows, wrong columns and other arguments are found before any request.
        empty = build_empty(analysis, frames, absent)
        chosen.select(compute(analysis, empty, arguments, step, "mainnet"))
        with connection.open_explorer(values) as explorer:
            for frame in absent:
                call = build_call(analysis, frame, given, frames, explorer)
                loader = chart_input.require_loader(analysis.loaders[frame])
                frames[frame] = loader(**call, **strict, explorer=explorer)
            if analysis.name == "upcoming-duties" and "epoch" not in arguments:
                arguments["epoch"] = explorer.chain_head.latest("epoch")
            chain: Any = explorer.chain
            facts["requests"] = explorer.requests
    else:
        check_offline()
        chain = values["chain"] or "mainnet"
    print_left_out(analysis, frames)
    result = compute(analysis, frames, arguments, step, chain)
    # No text of the rows of a tax tool is from the chain, and it imports no apostrophes.
    chosen.write(result, facts, raw="tool" in step)
    if ends_with_code:
        analysis_results.end_with_code(result)


def compute(
    analysis: Analysis,
    frames: Mapping[str, pl.DataFrame],
    arguments: Mapping[str, Any],
    step: Mapping[str, Any],
    chain: Any,
) -> pl.DataFrame:
    """Call the function of an analysis, and what follows it with the options of this *step*."""
    own = {}
    if analysis.source:
        of_source = list_analyses()[analysis.source].frames
        own = {frame: rows for frame, rows in frames.items() if frame not in of_source}
    others = {frame: rows for frame, rows in frames.items() if frame not in own}
    more = {"chain": chain} if "chain" in analysis.parameters else {}
    rows = analysis.main(**others, **arguments, **more)
    if analysis.source:
        rows = get_function(analysis.name)(rows, **own)
    if (function := analysis_results.STEPS.get(analysis.name)) is not None:
        if analysis.name == "ledger":
            price = arguments["price"] if "prices" in frames else None
            step = {**step, "price": price, "tz": arguments["tz"]}
        rows = function(rows, **step)
    return cast("pl.DataFrame", rows)


def print_left_out(analysis: Analysis, frames: Mapping[str, Any]) -> None:
    """Print the options for duties that are not loaded: no rows would mean that there are none."""
    left_out = sorted(analysis.optional.keys() - frames.keys())
    if analysis.name == "upcoming-duties" and left_out:
        kinds = {"committees": "sync committees", "duties": "proposals"}
        listed = " and ".join(kinds[frame] for frame in left_out)
        options = " ".join(f"--with {frame}" for frame in left_out)
        print_message(f"{listed} are listed with {options}")


def parse_range(analysis: Analysis, given: Mapping[str, Any]) -> dict[str, int]:
    """Return --since and --until of an analysis whose first frame is a file."""
    epochs = {key: given[key] for key in RANGE if key in given}
    for key, value in epochs.items():
        if key not in analysis.options:
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


analyse = BuiltGroup(
    "analyse",
    names=list_analyses,
    build=build_command,
    subcommand_metavar="ANALYSIS [OPTIONS]",
    help="""Analyse loaded rows, or rows in files.

    Write analyse income --input income.parquet --every day --unit eth, or use --validators and
    --since to load the rows.
    """,
)
