"""``beaconframes analyse``: call a function of `analysis` on loaded rows, or on files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import click

from beaconframes.cli import analysis_results, loader_options, output
from beaconframes.cli import connection_options as connection
from beaconframes.cli.analyses import RANGE, Analysis, get_function, list_analyses
from beaconframes.cli.analysis_frames import (
    build_call,
    build_empty,
    count_from_one_head,
    find_validators,
    parse_inputs,
    read_frame,
)
from beaconframes.cli.common_options import BuiltGroup, refuse_options
from beaconframes.cli.docstrings import describe
from beaconframes.cli.from_signature import Kind, command, list_arguments
from beaconframes.cli.messages import print_message
from beaconframes.errors import UsageError
from beaconframes.time_range import local_range

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from beaconframes.cli.from_signature import Argument

SUBJECT_LOADER = "income-history"
"""A loader with --validators, --since and --until."""


def list_step_options(name: str) -> dict[str, Argument]:
    """Return the options of what follows an analysis, if anything does."""
    step = analysis_results.STEPS.get(name)
    kinds = {"min_cost": Kind("ETH", analysis_results.parse_cost)}
    return list_arguments(step, ["rows", "price", "tz"], kinds=kinds) if step else {}


def build_command(name: str) -> click.Command:
    """Return the command of an analysis."""
    analysis = list_analyses()[name]
    has_problems = "problems" in (name, analysis.source)

    @command(
        *build_frame_options(analysis),
        *([analysis_results.EXIT_CODE] if has_problems else []),
        *connection.connection_options(),
        name=name,
        text=describe_analysis(analysis),
        given=list_loading_options(analysis),
        arguments=analysis.options,
        step=list_step_options(name),
    )
    def run(
        file: str | None = None,
        *,
        given: dict[str, Any],
        arguments: dict[str, Any],
        step: dict[str, Any],
        strict: bool = False,
        chosen: output.Output,
        **values: Any,
    ) -> None:
        """Read or load the frames, call the function, and write its result.

        Parameters
        ----------
        strict
            Fail if any requested rows are missing.
        """
        ends_with_code = values.pop("exit_code", False)
        texts = [*([file] if file else []), *values.pop("inputs")]
        wanted = [*analysis.loaded, *values.pop("wanted", ())]
        frames = read_inputs(analysis, texts, given, arguments)
        facts: dict[str, Any] = {"analysis": name, "requests": 0}
        if absent := [frame for frame in wanted if frame not in frames]:
            if analysis.takes_validators:
                find_validators(given, frames.get(analysis.first))
            # Without rows, wrong columns and other arguments are found before any request.
            empty = build_empty(analysis, frames, absent)
            chosen.select(compute(analysis, empty, arguments, step, "mainnet"))
            with connection.open_explorer(values) as explorer:
                given |= count_from_one_head(analysis, given, absent, explorer)
                for frame in absent:
                    call = build_call(analysis, frame, given, frames, explorer)
                    loader = loader_options.require_loader(analysis.loaders[frame])
                    frames[frame] = loader(**call, strict=strict or None, explorer=explorer)
                if name == "upcoming-duties":
                    arguments.setdefault("epoch", explorer.chain_head.latest("epoch"))
                chain: Any = explorer.chain
                facts["requests"] = explorer.requests
        else:
            others = [option for option in connection.NAMES if option != "chain"]
            refuse_options(others, "--input", hint="All frames come from files")
            chain = values["chain"] or "mainnet"
        print_left_out(analysis, frames)
        result = compute(analysis, frames, arguments, step, chain)
        # No text of the rows of a tax tool is from the chain, and it imports no apostrophes.
        chosen.write(result, facts, raw="tool" in step)
        if ends_with_code:
            analysis_results.end_with_code(result)

    return run


def build_frame_options(analysis: Analysis) -> list[click.Option]:
    """Return the options that read frames from files, or load optional ones."""
    inputs = click.Option(
        ["--input", "inputs"],
        multiple=True,
        metavar="[NAME=]FILE",
        help="Read a frame from a file instead of loading it. "
        f"FILE, or --input without NAME: {analysis.first}. "
        f"Other names: {', '.join(analysis.frames[1:]) or 'none'}.",
    )
    if not analysis.optional:
        return [inputs]
    text = "Also load this frame; repeat it for each."
    kind = click.Choice(list(analysis.optional))
    return [inputs, click.Option(["--with", "wanted"], type=kind, multiple=True, help=text)]


def list_loading_options(analysis: Analysis) -> dict[str, Argument]:
    """Return --validators, --since and --until, as the loader of the first frame has them."""
    usual, own = (
        loader_options.list_arguments(loader_options.require_loader(loader))
        for loader in (SUBJECT_LOADER, analysis.loaders[analysis.first])
    )
    names = {*RANGE} & (own.keys() | analysis.parameters.keys())
    if analysis.takes_validators or "validators" in analysis.parameters:
        names.add("validators")
    return {n: replace(each, default=None) for n, each in (usual | own).items() if n in names}


def describe_analysis(analysis: Analysis) -> str:
    """Return the help text: the beginning of the docstring, and the frames."""
    text = describe(get_function(analysis.name), [*analysis.options, *RANGE])
    rows = [f"{frame} (load {loader})" for frame, loader in analysis.loaders.items()]
    rows += [f"{frame} (a file)" for frame in analysis.files]
    return f"{text}\n\nFrames: {', '.join(rows)}."


def read_inputs(
    analysis: Analysis,
    texts: Sequence[str],
    given: dict[str, Any],
    arguments: dict[str, Any],
) -> dict[str, pl.DataFrame]:
    """Return the frames that are files, and complete the ranges of the others and of the rows."""
    files = parse_inputs(analysis, texts)
    if "validators" in given.keys() & analysis.parameters.keys() - {*analysis.frames}:
        arguments["validators"] = given["validators"]
    if analysis.first in files:
        arguments |= parse_range(analysis, given)
    else:
        tz = arguments.get("tz", "UTC")
        given |= local_range(**{key: given.get(key) for key in RANGE}, tz=tz)
    return {
        frame: read_frame(file, frame, analysis.loaders.get(frame), arguments)
        for frame, file in files.items()
    }


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
    others = [key for key in RANGE if key not in analysis.parameters]
    refuse_options(others, "--input", hint=f"All rows of {analysis.first} come from the file")
    epochs = {key: given[key] for key in RANGE if key in given}
    for key, value in epochs.items():
        if not isinstance(value, int):
            raise UsageError(f"--{key} {value!r} is not an epoch", hint="A file needs a number")
    return epochs


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
