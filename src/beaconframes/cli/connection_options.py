"""Options of every command that loads: which explorer, which key, which store, which limits."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli.common_options import FILE, refuse_options, typed_options
from beaconframes.cli.from_signature import Argument, find_kind, resolve_types
from beaconframes.cli.key_file import read_key
from beaconframes.errors import UsageError
from beaconframes.setting_table import DEFAULTS, SETTINGS, VARIABLES, SettingArguments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beaconframes.client import Explorer

OF_EXPLORER = ("url", "chain", "store", "offline")
"""Settings that are arguments of an explorer; the others are those of all its loads."""


class ConnectionOption(click.Option):
    """An option that --help-connection describes, so that --help has one line for all of them."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return nothing for --help."""
        return None


def describe_options(context: click.Context) -> list[tuple[str, str]]:
    """Return the names of each option, and its help."""
    records = (click.Option.get_help_record(option, context) for option in list_options())
    return list(filter(None, records))


def connection_options() -> list[click.Parameter]:
    """Return the options; `open_explorer` takes their values."""
    listed = ", ".join(option.opts[0] for option in list_options())
    return [
        *list_options(),
        click.Option(
            ["--help-connection"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=print_options,
            help=f"Describe the options of the connection, which are {listed}.",
        ),
    ]


def print_options(context: click.Context, _option: click.Parameter, chosen: bool) -> None:
    """Print the options of the connection, and end."""
    if chosen and not context.resilient_parsing:
        formatter = context.make_formatter()
        with formatter.section("Options of the connection"):
            formatter.write_dl(describe_options(context))
        click.echo(formatter.getvalue().rstrip("\n"))
        context.exit()


@cache
def list_options() -> list[click.Option]:
    """Return the options of the settings, and those that choose another source."""
    return [
        *(build_setting(name) for name, setting in SETTINGS.items() if setting.is_option),
        ConnectionOption(
            ["--key-file"],
            type=FILE,
            help="File with the API key, readable by its owner only. The default is "
            "BEACONFRAMES_API_KEY, which is never sent to the address of --url.",
        ),
        ConnectionOption(["--ask-key"], is_flag=True, help="Prompt for the API key."),
        ConnectionOption(["--no-store"], is_flag=True, help="Store no rows."),
        ConnectionOption(
            ["--local"],
            is_flag=True,
            envvar="BEACONFRAMES_LOCAL",
            help="Load from a local explorer with a simulated chain: no key, no network. "
            "[BEACONFRAMES_LOCAL]",
        ),
        ConnectionOption(
            ["--dataset"], type=FILE, help="Load from this dataset on disk, without a server."
        ),
        ConnectionOption(
            ["--node"],
            metavar="[URL]",
            is_flag=False,
            flag_value="",  # of the environment
            help="Load from your own beacon node. Without an address, from that of "
            "BEACONFRAMES_NODE: the list of processes shows options, so an address with "
            "credentials belongs there.",
        ),
        ConnectionOption(
            ["--execution"],
            metavar="URL",
            help="Address of the JSON-RPC of the execution node, with --node. For --node without "
            "an address: [BEACONFRAMES_EXECUTION]",
        ),
    ]


def build_setting(name: str, make: type[click.Option] = ConnectionOption) -> click.Option:
    """Return the option of a setting."""
    setting = SETTINGS[name]
    kind = find_kind(resolve_types(SettingArguments).get(name, str))
    text = f"{setting.summary} [{VARIABLES[name]}]"
    # A flag whose default is False has no option that turns it off.
    default = False if DEFAULTS[name] is False else None
    argument = Argument(name, replace(kind, metavar=setting.metavar), default, text)
    return argument.build(make)


NAMES = tuple(option.name for option in list_options() if option.name)
SOURCES = ("url", "chain", "key_file", "ask_key", "dataset", "node")
"""Options that choose another source than --local: they override BEACONFRAMES_LOCAL."""
EXPLORER_ONLY = ("url", "chain", "key_file", "ask_key", "offline")
"""Options that only an explorer on the network accepts."""
EXCLUDED = {
    "node": (*EXPLORER_ONLY, "store_limit", "local", "dataset"),
    "local": (*EXPLORER_ONLY, "dataset", "execution"),
    "dataset": (*EXPLORER_ONLY, "store", "execution"),
}
"""Options that exclude the choice of a source."""


@contextlib.contextmanager
def open_explorer(values: dict[str, Any], *, sends_requests: bool = True) -> Iterator[Explorer]:
    """Remove the connection options from *values*, and open their explorer.

    Without *sends_requests*, the explorer needs no key.
    """
    from beaconframes.config import settings

    chosen = {name: values.pop(name) for name in NAMES}
    typed = typed_options()
    if "local" not in typed and typed & {*SOURCES}:
        # Options override the environment.
        chosen["local"] = False
    given = {}
    for name in SETTINGS.keys() & chosen.keys() - {*OF_EXPLORER, "node", "execution"}:
        value = chosen[name]
        if value is not None:
            given[name] = SETTINGS[name].read(value) if isinstance(value, str) else value
    with (
        settings(frame="polars", **given),
        _open_chosen(chosen, sends_requests=sends_requests) as explorer,
    ):
        yield explorer


def _open_chosen(
    chosen: dict[str, Any], *, sends_requests: bool
) -> contextlib.AbstractContextManager[Explorer]:
    """Return the chosen explorer, to be entered; it is the default one of loaders."""
    from beaconframes.client import Explorer, set_explorer
    from beaconframes.client.explorer import RequestlessExplorer

    _check_source(chosen)
    if chosen["no_store"] and chosen["store"] is not None:
        raise UsageError("--store and --no-store exclude each other", hint="Use one of them")
    store = False if chosen["no_store"] else chosen["store"]
    if chosen["node"] is not None:
        from beaconframes.beacon_node.node import node

        return node(
            chosen["node"] or None,
            execution=chosen["execution"],
            rate=chosen["rate"],
            store=store,
        )
    if chosen["dataset"] is not None:
        from beaconframes.opened_dataset import open as open_dataset

        return open_dataset(chosen["dataset"])
    if chosen["local"]:
        from beaconframes.server import local

        return local(store=store)
    explorer = (Explorer if sends_requests else RequestlessExplorer)(
        chosen["url"],
        api_key=read_key(chosen["key_file"], prompt=chosen["ask_key"]),
        chain=chosen["chain"],
        store=store,
        offline=chosen["offline"] or None,
    )
    set_explorer(explorer)
    return explorer


def _check_source(chosen: dict[str, Any]) -> None:
    """Refuse options that exclude the chosen source."""
    source = next((name for name in EXCLUDED if chosen[name] not in {None, False}), None)
    if source is not None:
        is_typed = source in typed_options()
        beside = f"--{source}" if is_typed else "BEACONFRAMES_LOCAL"
        refuse_options(EXCLUDED[source], beside, hint="Use one of them")
    elif chosen["execution"] is not None:
        raise UsageError(
            "--execution is given without --node",
            hint="Give the address of the beacon node with --node",
        )
