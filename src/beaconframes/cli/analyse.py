"""``beaconframes analyse``: call a function of `analysis` on loaded rows, or on files."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, cast, get_args

import click

from beaconframes.calendar import local_range
from beaconframes.cli import analyse_filters, chart_input, output
from beaconframes.cli import connection_options as connection
from beaconframes.cli.analyses import ANALYSES
from beaconframes.cli.analysis_frames import (
    RANGE,
    build_call,
    build_empty,
    find_validators,
    parse_inputs,
    read_frame,
)
from beaconframes.cli.common_options import SuggestingGroup, add_common_options, typed_options
from beaconframes.cli.help_texts import parse_argument_help, parse_summary
from beaconframes.cli.loader_options import loader_options, pop_arguments
from beaconframes.cli.messages import print_message
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from beaconframes.cli.analyses import Analysis

HELP = {
    "every": "Time of one row.",
    "by": "Group columns, separated by commas.",
    "tz": "Time zone of the days, and of dates in --since and --until, such as Europe/Berlin.",
}
"""The help of options whose description in Python is too long, or missing."""
TAXES = ("tool", "yearly", "starts")
"""The options of ledger that convert its days."""
SUBJECT_LOADER = "income-history"
"""A loader with --validators, --since and --until."""


class AnalysisGroup(SuggestingGroup):
    """A group with one command for each function of `analysis`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the functions."""
        return list(ANALYSES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Build the command of a function."""
        name = cmd_name.replace("_", "-")
        return add_common_options(build_command(name)) if name in ANALYSES else None


def get_function(name: str) -> Callable[..., Any]:
    """Return the function of an analysis."""
    from beaconframes import analysis

    function: Callable[..., Any] = getattr(analysis, name.replace("-", "_"))
    return function


def get_source(name: str) -> Callable[..., Any]:
    """Return the function that takes the frames and the options of an analysis."""
    return get_function(ANALYSES[name].source or name)


def list_choices(function: Callable[..., Any], argument: inspect.Parameter) -> tuple[str, ...]:
    """Return the values of an argument that is annotated with a Literal; else none."""
    kind = inspect.unwrap(function).__globals__.get(str(argument.annotation))
    return get_args(kind)


def list_options(name: str) -> dict[str, inspect.Parameter]:
    """Return the arguments of an analysis that are neither frames nor the chain."""
    function = get_source(name)
    excluded = {*ANALYSES[name].frames, "chain", "validators"}
    parameters = inspect.signature(function).parameters
    return {
        key: value
        for key, value in parameters.items()
        if key not in excluded and not is_frame(value)
    }


def is_frame(argument: inspect.Parameter) -> bool:
    """Return whether an argument is a frame: no text of an option can be one."""
    return str(argument.annotation).startswith("IntoFrame")


def build_option(analysis: str, name: str, argument: inspect.Parameter) -> click.Option:
    """Return the option for one argument of an analysis."""
    function = get_source(analysis)
    names = [f"--{name.replace('_', '-')}", name]
    text = HELP.get(name) or parse_argument_help(function, list_options(analysis)).get(name, "")
    if isinstance(argument.default, bool):
        return click.Option(names, is_flag=True, help=text)
    choices = list_choices(function, argument)
    kinds = {"int": int, "float": float}
    kind = click.Choice(choices) if choices else kinds.get(argument.annotation.split()[0], str)
    default = argument.default or None
    return click.Option(
        names, type=kind, default=default, show_default=default is not None, help=text
    )


def build_command(name: str) -> click.Command:
    """Return the command of an analysis."""
    analysis = ANALYSES[name]
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
            *(
                build_option(name, key, value)
                for key, value in list_options(name).items()
                if key not in RANGE
            ),
            *(build_tax_options() if name == "ledger" else ()),
            *(analyse_filters.build_filters() if "problems" in (name, analysis.source) else ()),
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
    analysis = ANALYSES[name]
    names = {*RANGE}
    if analysis.takes_validators or "validators" in inspect.signature(get_source(name)).parameters:
        names.add("validators")
    loaders = (SUBJECT_LOADER, analysis.loaders[analysis.first])
    every = [o for loader in loaders for o in loader_options(chart_input.require_loader(loader))]
    options = {option.name: option for option in every if option.name in names}
    for option in options.values():
        option.required = False
    return list(options.values())


def build_tax_options() -> list[click.Option]:
    """Return the options that convert the days of a ledger."""
    from beaconframes.analysis.valuation import TaxTool

    return [
        click.Option(
            ["--tool"],
            type=click.Choice(get_args(TaxTool)),
            help="Return the rows that this tax tool imports, instead of days and validators.",
        ),
        click.Option(["--yearly"], is_flag=True, help="Return the totals of tax years."),
        click.Option(
            ["--starts"], help="First day of the tax year, such as 04-06; the default is 01-01."
        ),
    ]


def convert_ledger(
    rows: pl.DataFrame, taxes: Mapping[str, Any], *, price: str | None, tz: str
) -> pl.DataFrame:
    """Return the rows of a tax tool, the totals of tax years, or the ledger itself."""
    from beaconframes import analysis

    if taxes["tool"] is not None:
        return analysis.tax_rows(rows, taxes["tool"], price=price, tz=tz)
    if taxes["yearly"]:
        return analysis.yearly_totals(rows, starts=taxes["starts"] or "01-01")
    return rows


def check_taxes(taxes: Mapping[str, Any]) -> None:
    """Refuse options of taxes that exclude each other."""
    if taxes["tool"] is not None and taxes["yearly"]:
        raise UsageError("--tool and --yearly exclude each other", hint="Use one of them")
    if taxes["starts"] is not None and not taxes["yearly"]:
        raise UsageError("--starts needs --yearly", hint="Add --yearly")


def build_with_option(analysis: Analysis) -> list[click.Option]:
    """Return the option to load optional frames, if there are any."""
    if not analysis.optional:
        return []
    text = "Also load this frame; repeat it for each."
    kind = click.Choice(list(analysis.optional))
    return [click.Option(["--with", "wanted"], type=kind, multiple=True, help=text)]


def describe_analysis(name: str) -> str:
    """Return the help text: the beginning of the docstring, and the frames."""
    text = parse_summary(get_function(name), list_options(name))
    rows = [f"{frame} (load {loader})" for frame, loader in ANALYSES[name].loaders.items()]
    rows += [f"{frame} (a file)" for frame in ANALYSES[name].files]
    return f"{text}\n\nFrames: {', '.join(rows)}."


def run_analysis(name: str, values: dict[str, Any]) -> None:
    """Read or load the frames, call the function, and write its result."""
    analysis, function = ANALYSES[name], get_source(name)
    chosen = output.pop_output_options(values)
    taxes = {key: values.pop(key) for key in TAXES if key in values}
    if taxes:
        check_taxes(taxes)
    filters = analyse_filters.pop_filters(values)
    strict = {"strict": True} if values.pop("strict") else {}
    file, inputs = values.pop("file"), values.pop("inputs")
    files = parse_inputs(analysis, [file, *inputs] if file else inputs)
    wanted = [*analysis.loaded, *values.pop("wanted", ())]
    values.setdefault("validators", ())
    given = pop_arguments(chart_input.require_loader(SUBJECT_LOADER), values)
    arguments = {
        key: parse_option(argument, values.pop(key))
        for key, argument in list_options(name).items()
        if key not in RANGE
    }
    parameters = inspect.signature(function).parameters
    if "validators" in given.keys() & parameters.keys() - {*analysis.frames}:
        arguments["validators"] = given["validators"]
    if analysis.first in files:
        arguments |= parse_range(analysis, given, list_options(name))
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
            if "epoch" in arguments and arguments["epoch"] is None and name == "upcoming-duties":
                arguments["epoch"] = explorer.chain_head.latest("epoch")
            chain: Any = explorer.chain
            facts["requests"] = explorer.requests
    else:
        check_offline()
        chain = values["chain"] or "mainnet"
    print_left_out(name, analysis, frames)
    result = analyse_filters.filter_rows(compute(name, frames, arguments, taxes, chain), filters)
    if taxes:
        # No text of such rows is from the chain, and tax tools import no apostrophes.
        chosen |= {"raw": chosen["raw"] or taxes["tool"] is not None}
    output.write_rows(result, chosen, facts)
    analyse_filters.end_with_code(result, filters)


def compute(
    name: str,
    frames: Mapping[str, pl.DataFrame],
    arguments: Mapping[str, Any],
    taxes: Mapping[str, Any],
    chain: Any,
) -> pl.DataFrame:
    """Call the function of an analysis; convert a ledger for taxes."""
    if source := ANALYSES[name].source:
        own = {frame: frames[frame] for frame in frames.keys() - {*ANALYSES[source].frames}}
        others = {frame: rows for frame, rows in frames.items() if frame not in own}
        rows = compute(source, others, arguments, taxes, chain)
        return cast("pl.DataFrame", get_function(name)(rows, **own))
    function = get_function(name)
    more = {"chain": chain} if "chain" in inspect.signature(function).parameters else {}
    result: pl.DataFrame = function(**frames, **arguments, **more)
    if not taxes:
        return result
    price = arguments["price"] if "prices" in frames else None
    return convert_ledger(result, taxes, price=price, tz=arguments["tz"])


def print_left_out(name: str, analysis: Analysis, frames: Mapping[str, Any]) -> None:
    """Print the options for duties that are not loaded: no rows would mean that there are none."""
    left_out = sorted(analysis.optional.keys() - frames.keys())
    if name == "upcoming-duties" and left_out:
        kinds = {"committees": "sync committees", "duties": "proposals"}
        listed = " and ".join(kinds[frame] for frame in left_out)
        options = " ".join(f"--with {frame}" for frame in left_out)
        print_message(f"{listed} are listed with {options}")


def parse_option(argument: inspect.Parameter, value: Any) -> Any:
    """Return the value of an option as the function takes it; the default if it is not given."""
    if value is None:
        return argument.default
    if "Sequence[str]" in str(argument.annotation):
        return [name.strip() for name in value.split(",")]
    return value


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
