"""Options of every command that loads: which explorer, which key, which store, which limits."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli.common_options import FILE, pop_options, typed_options
from beaconframes.cli.messages import print_message, print_warning
from beaconframes.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beaconframes.client import Explorer
    from beaconframes.dataset import Dataset

OTHERS_PERMISSIONS = 0o077
"""Permission bits that a key file must not have."""
MAX_KEY_BYTES = 4096
NODE_OF_ENVIRONMENT = ""
"""The value of --node without an address."""


def connection_options() -> list[click.Parameter]:
    """Return the options; `open_explorer` takes their values."""
    return [
        click.Option(["--url"], help="Address of the explorer. [BEACONFRAMES_URL]"),
        click.Option(
            ["--chain"],
            help="mainnet or hoodi; the default is what the explorer at --url states, or "
            "mainnet. [BEACONFRAMES_CHAIN]",
        ),
        click.Option(
            ["--key-file"],
            type=FILE,
            help="File with the API key, readable by its owner only. The default is "
            "BEACONFRAMES_API_KEY, which is never sent to the address of --url.",
        ),
        click.Option(["--ask-key"], is_flag=True, help="Prompt for the API key."),
        click.Option(
            ["--rate"], type=float, help="Maximum requests per second. [BEACONFRAMES_RATE]"
        ),
        click.Option(
            ["--store"], type=FILE, help="Store final rows in this folder. [BEACONFRAMES_STORE]"
        ),
        click.Option(
            ["--store-limit"],
            metavar="SIZE",
            help="Largest size of the store, such as 2GB. [BEACONFRAMES_STORE_LIMIT]",
        ),
        click.Option(["--no-store"], is_flag=True, help="Store no rows."),
        click.Option(
            ["--max-requests"],
            type=click.IntRange(min=1),
            help="Fail before the first request if more requests are needed.",
        ),
        click.Option(
            ["--timeout"],
            metavar="SECONDS[,SECONDS]",
            help="Seconds for one request, and for a whole call. [BEACONFRAMES_TIMEOUT]",
        ),
        click.Option(
            ["--offline"],
            is_flag=True,
            help="Read stored rows only, without requests. [BEACONFRAMES_OFFLINE]",
        ),
        click.Option(
            ["--local"],
            is_flag=True,
            envvar="BEACONFRAMES_LOCAL",
            help="Load from a local explorer with a simulated chain: no key, no network. "
            "[BEACONFRAMES_LOCAL]",
        ),
        click.Option(
            ["--dataset"], type=FILE, help="Load from this dataset on disk, without a server."
        ),
        click.Option(
            ["--node"],
            metavar="[URL]",
            is_flag=False,
            flag_value=NODE_OF_ENVIRONMENT,
            help="Load from your own beacon node. Without an address, from that of "
            "BEACONFRAMES_NODE: the list of processes shows options, so an address with "
            "credentials belongs there.",
        ),
        click.Option(
            ["--execution"],
            metavar="URL",
            help="Address of the JSON-RPC of the execution node, with --node. For --node without "
            "an address: [BEACONFRAMES_EXECUTION]",
        ),
        click.Option(
            ["--progress/--no-progress"],
            default=None,
            help="Show progress on standard error; the default is to show it on a terminal. "
            "[BEACONFRAMES_PROGRESS]",
        ),
    ]


NAMES = tuple(option.name for option in connection_options() if option.name)
SOURCES = ("url", "chain", "key_file", "ask_key", "dataset", "node")
"""Options that choose another source than --local: they override BEACONFRAMES_LOCAL."""
EXPLORER_ONLY = ("url", "chain", "key_file", "ask_key", "offline")
"""Options that only an explorer on the network accepts."""
EXCLUDED = {
    "node": (*EXPLORER_ONLY, "store_limit", "local", "dataset"),
    "local": (*EXPLORER_ONLY, "store", "dataset", "execution"),
    "dataset": (*EXPLORER_ONLY, "store", "execution"),
}
"""Options that exclude the choice of a source."""
SETTINGS = ("progress", "rate", "store_limit", "max_requests", "timeout")


@contextlib.contextmanager
def open_explorer(values: dict[str, Any], *, sends_requests: bool = True) -> Iterator[Explorer]:
    """Remove the connection options from *values*, and open their explorer.

    Without *sends_requests*, the explorer needs no key.
    """
    from beaconframes.config import parse_timeout, settings

    chosen = pop_options(values, NAMES)
    chosen["local"] = is_local(chosen)
    given = {name: chosen[name] for name in SETTINGS if chosen[name] is not None}
    if "timeout" in given:
        # Other text is refused with the other settings.
        with contextlib.suppress(ValueError):
            given["timeout"] = parse_timeout(given["timeout"])
    with (
        settings(frame="polars", **given),
        _open_chosen(chosen, sends_requests=sends_requests) as explorer,
    ):
        yield explorer


def is_local(chosen: dict[str, Any]) -> bool:
    """Return whether to load from the sample; options override the environment."""
    return bool(chosen["local"]) and (
        "local" in typed_options() or not typed_options() & {*SOURCES}
    )


@contextlib.contextmanager
def _open_chosen(chosen: dict[str, Any], *, sends_requests: bool) -> Iterator[Explorer]:
    from beaconframes.client import Explorer, set_explorer
    from beaconframes.client.explorer import RequestlessExplorer

    _check_source(chosen)
    if chosen["no_store"] and chosen["store"] is not None:
        raise UsageError("--store and --no-store exclude each other", hint="Use one of them")
    store = False if chosen["no_store"] else chosen["store"]
    if chosen["node"] is not None:
        with _open_node(chosen, store) as explorer:
            yield explorer
        return
    if chosen["local"] or chosen["dataset"] is not None:
        with use_dataset(chosen["dataset"]) as explorer:
            yield explorer
        return
    with (Explorer if sends_requests else RequestlessExplorer)(
        chosen["url"],
        api_key=read_key(chosen["key_file"], prompt=chosen["ask_key"]),
        chain=chosen["chain"],
        store=store,
        offline=chosen["offline"] or None,
    ) as explorer:
        set_explorer(explorer)
        yield explorer


def _open_node(chosen: dict[str, Any], store: bool | Path | None) -> Explorer:
    from beaconframes.beacon_node.node import node
    from beaconframes.config import current as current_settings

    url = None if chosen["node"] == NODE_OF_ENVIRONMENT else chosen["node"]
    if url is None and current_settings().node is None:
        raise ConfigError(
            "--node has no address, and BEACONFRAMES_NODE is not set",
            hint="Give the address of the node with one of them, such as http://localhost:5052",
        )
    return node(url, execution=chosen["execution"], rate=chosen["rate"], store=store)


def is_simulated(values: dict[str, Any]) -> bool | None:
    """Return whether the source of these options is simulated; None if this is unknown."""
    if values["node"] is not None:
        return False
    if values["dataset"] is None:
        return is_local(values) or None
    from beaconframes.dataset import Dataset

    simulated: bool | None = Dataset.open(values["dataset"]).meta.get("simulated")
    return simulated


def _check_source(chosen: dict[str, Any]) -> None:
    """Refuse options that exclude the chosen source."""
    source = next((name for name in EXCLUDED if chosen[name] not in {None, False}), None)
    if source is None:
        if chosen["execution"] is not None:
            raise UsageError(
                "--execution is given without --node",
                hint="Give the address of the beacon node with --node",
            )
        return
    wrong = [name for name in EXCLUDED[source] if chosen[name] not in {None, False}]
    if not wrong:
        return
    name = wrong[0].replace("_", "-")
    if source == "local" and "local" not in typed_options():
        raise UsageError(
            f"BEACONFRAMES_LOCAL and --{name} exclude each other",
            hint="Unset BEACONFRAMES_LOCAL, or choose a source with --url, --chain or --node",
        )
    raise UsageError(f"--{source} and --{name} exclude each other", hint="Use one of them")


@contextlib.contextmanager
def use_dataset(folder: Path | None) -> Iterator[Explorer]:
    """Open a dataset, or serve the sample, while this command runs."""
    from beaconframes.opened_dataset import open as open_folder
    from beaconframes.server import local

    with contextlib.ExitStack() as stack:
        if folder is not None:
            yield stack.enter_context(open_folder(folder))
        else:
            yield stack.enter_context(local(stack.enter_context(open_stored_sample())))


@contextlib.contextmanager
def open_stored_sample(*, live: bool = False) -> Iterator[Dataset]:
    """Open the stored sample; if it cannot be stored, simulate it in a temporary folder."""
    from beaconframes.simulator import has_sample, open_sample, sample_arguments, simulate

    with contextlib.ExitStack() as stack:
        if not has_sample(live=live):
            often = "once a day" if live else "once"
            print_message(f"simulating the sample chain; this takes some seconds, {often}")
        try:
            sample = open_sample(live=live)
        except OSError as error:
            print_warning(f"the sample cannot be stored: {error.filename}: {error.strerror}")
            folder = Path(stack.enter_context(_temporary_folder()))
            sample = simulate(folder / "sample", **sample_arguments(live=live))
        yield sample


def _temporary_folder() -> Any:
    import tempfile

    return tempfile.TemporaryDirectory(prefix="beaconframes-")


def read_key(file: Path | None, *, prompt: bool) -> str | None:
    """Return the key from a file or a prompt; None means the key of the environment."""
    if file is not None and prompt:
        raise UsageError("--key-file and --ask-key exclude each other", hint="Use one of them")
    if file is not None:
        return read_key_file(file)
    if not prompt:
        return None
    if sys.stdin is None or not sys.stdin.isatty():
        raise ConfigError("--ask-key needs a terminal", hint="Use --key-file instead")
    key: str = click.prompt("API key", hide_input=True, err=True)
    return key


def read_key_file(file: Path) -> str:
    """Return the key in a file that only its owner can read."""
    if file.is_dir():
        raise ConfigError(f"{file} is a folder", hint="Give the file in it that contains the key")
    try:
        if file.stat().st_mode & OTHERS_PERMISSIONS:
            raise ConfigError(
                f"other users can read {file}",
                hint=f"Run: chmod 600 {file.name}, and replace the key, which may be known",
            )
        with file.open("rb") as opened:
            text = opened.read(MAX_KEY_BYTES).decode("ascii").strip()
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{file} does not contain a key: it is not ASCII text") from None
    if not text:
        raise ConfigError(f"{file} is empty", hint="Write the key into it, and nothing else")
    return text
