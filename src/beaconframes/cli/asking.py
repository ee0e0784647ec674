"""Whom to ask, with which key, how fast: the options of every command that loads."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from beaconframes.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beaconframes.client import Explorer
    from beaconframes.dataset import Dataset

EVERYBODY = 0o077
"""What the permissions of a key's file may not have."""
LARGEST_KEY = 4096


def options() -> list[click.Parameter]:
    """Return the options; `connected` takes what they say."""
    folder = click.Path(path_type=Path)
    return [
        click.Option(["--url"], help="Address of the explorer. [BEACONFRAMES_URL]"),
        click.Option(["--chain"], help="mainnet or hoodi. [BEACONFRAMES_CHAIN]"),
        click.Option(
            ["--key-file"],
            type=folder,
            help="File with the API key, which nobody else may read. Otherwise the key is that of "
            "BEACONFRAMES_API_KEY, which is never sent to an address given by --url.",
        ),
        click.Option(["--ask-key"], is_flag=True, help="Ask for the API key on the terminal."),
        click.Option(["--rate"], type=float, help="Most requests a second. [BEACONFRAMES_RATE]"),
        click.Option(
            ["--store"], type=folder, help="Keep what is final in this folder. [BEACONFRAMES_STORE]"
        ),
        click.Option(["--no-store"], is_flag=True, help="Keep nothing."),
        click.Option(
            ["--max-requests"],
            type=click.IntRange(min=1),
            help="Refuse what takes more requests than so many.",
        ),
        click.Option(
            ["--offline"],
            is_flag=True,
            help="Ask nobody: only what is kept. [BEACONFRAMES_OFFLINE]",
        ),
        click.Option(
            ["--local"],
            is_flag=True,
            envvar="BEACONFRAMES_LOCAL",
            help="Ask a local explorer that serves a simulated chain: no key, no network. "
            "[BEACONFRAMES_LOCAL]",
        ),
        click.Option(
            ["--dataset"], type=folder, help="Ask a local explorer that serves this dataset."
        ),
        click.Option(
            ["--progress/--no-progress"],
            default=None,
            help="Show progress on standard error; by default, where somebody watches. "
            "[BEACONFRAMES_PROGRESS]",
        ),
    ]


NAMES = tuple(option.name for option in options() if option.name)
SOMEBODY = ("url", "chain", "key_file", "ask_key", "dataset")
"""Options that name somebody to ask: only these count more than BEACONFRAMES_LOCAL."""
NOT_LOCAL = ("url", "chain", "key_file", "ask_key", "store", "offline")
"""Options that make no sense where a local explorer serves a dataset."""
PACE = ("rate", "max_requests")


@contextlib.contextmanager
def connected(given: dict[str, Any]) -> Iterator[Explorer]:
    """Take these options out of *given*, and open the explorer that they mean."""
    from beaconframes.config import settings

    said = taken(given)
    # Loaders find out themselves whether somebody watches, if nobody said so.
    said_so = {n: said[n] for n in ("progress", *PACE) if said[n] is not None}
    with settings(frame="polars", **said_so), explorer_of(said) as explorer:
        yield explorer


def taken(given: dict[str, Any]) -> dict[str, Any]:
    """Take these options out of *given*; what is typed counts more than the environment."""
    said = {name: given.pop(name) for name in NAMES}
    said["local"] = is_local(said)
    return said


def is_local(said: dict[str, Any]) -> bool:
    """Tell whether the sample is asked; who is typed counts more than the environment."""
    return bool(said["local"]) and ("local" in typed() or not typed() & set(SOMEBODY))


def typed() -> set[str]:
    """Return the options that stand on the command line."""
    context = click.get_current_context()
    line = click.core.ParameterSource.COMMANDLINE
    return {name for name in context.params if context.get_parameter_source(name) is line}


@contextlib.contextmanager
def explorer_of(said: dict[str, Any]) -> Iterator[Explorer]:
    """Open the explorer."""
    from beaconframes.client import Explorer, use

    if said["local"] or said["dataset"] is not None:
        not_together(said)
        with served(said["dataset"]) as explorer:
            yield explorer
        return
    if said["no_store"] and said["store"] is not None:
        raise UsageError("--store and --no-store do not go together", hint="Give one of them")
    with Explorer(
        said["url"],
        api_key=key_of(said["key_file"], ask=said["ask_key"]),
        chain=said["chain"],
        store=False if said["no_store"] else said["store"],
        offline=said["offline"] or None,
    ) as explorer:
        before = use(explorer)
        try:
            yield explorer
        finally:
            use(before)


def simulated(said: dict[str, Any]) -> bool | None:
    """Tell whether what these options ask is simulated; None if nobody knows."""
    if said["dataset"] is None:
        return is_local(said) or None
    from beaconframes.dataset import Dataset

    told: bool | None = Dataset.open(said["dataset"]).meta.get("simulated")
    return told


def not_together(said: dict[str, Any]) -> None:
    """Refuse beside a local explorer what says something about another one."""
    wrong = [name for name in NOT_LOCAL if said[name]]
    if said["local"] and said["dataset"] is not None:
        wrong.append("dataset")
    if not wrong:
        return
    name = wrong[0].replace("_", "-")
    if said["local"] and "local" not in typed():
        raise UsageError(
            f"BEACONFRAMES_LOCAL and --{name} do not go together",
            hint="Unset it, or say whom to ask: --url or --chain",
        )
    option = "--local" if said["local"] else "--dataset"
    raise UsageError(f"{option} and --{name} do not go together", hint="Give one of them")


@contextlib.contextmanager
def served(folder: Path | None) -> Iterator[Explorer]:
    """Serve a dataset for this one command."""
    from beaconframes.server import local, open_dataset

    with contextlib.ExitStack() as stack:
        dataset = stack.enter_context(kept_sample()) if folder is None else open_dataset(folder)
        yield stack.enter_context(local(dataset)).explorer


@contextlib.contextmanager
def kept_sample() -> Iterator[Dataset]:
    """Give the sample; where it cannot be kept, one for this time alone."""
    from beaconframes.cli.running import say
    from beaconframes.simulator import SAMPLE, has_sample, open_sample, simulate

    with contextlib.ExitStack() as stack:
        if not has_sample():
            say("simulating a sample chain, which takes some seconds once")
        try:
            found = open_sample()
        except OSError as error:
            say(f"warning: the sample cannot be kept: {error.filename}: {error.strerror}")
            folder = Path(stack.enter_context(_scratch()))
            found = simulate(folder / "sample", **SAMPLE)
        yield found


def _scratch() -> Any:
    import tempfile

    return tempfile.TemporaryDirectory(prefix="beaconframes-")


def key_of(file: Path | None, *, ask: bool) -> str | None:
    """Return the key from a file or from the terminal; None to take that of the environment."""
    if file is not None and ask:
        raise UsageError("--key-file and --ask-key do not go together", hint="Give one of them")
    if file is not None:
        return key_in(file)
    if not ask:
        return None
    if sys.stdin is None or not sys.stdin.isatty():
        raise ConfigError("--ask-key needs a terminal", hint="Use --key-file instead")
    told: str = click.prompt("API key", hide_input=True, err=True)
    return told


def key_in(file: Path) -> str:
    """Return the key in a file that nobody else may read."""
    if file.is_dir():
        raise ConfigError(f"{file} is a folder", hint="Name the file in it that holds the key")
    try:
        if file.stat().st_mode & EVERYBODY:
            raise ConfigError(
                f"{file} can be read by others", hint=f"Run: chmod 600 {file.name}, and think of "
                "another key, for that one may be known"
            )  # fmt: skip
        with file.open("rb") as opened:
            text = opened.read(LARGEST_KEY).decode("ascii").strip()
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{file} holds no key") from None
    if not text:
        raise ConfigError(f"{file} is empty", hint="Write the key into it, and nothing else")
    return text
