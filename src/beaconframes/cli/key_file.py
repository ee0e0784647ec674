"""The API key from a file that only its owner can read, or from a prompt."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from beaconframes.errors import ConfigError, UsageError
from beaconframes.secret import Secret

if TYPE_CHECKING:
    from pathlib import Path

OTHERS_PERMISSIONS = 0o077
"""Permission bits that a key file must not have."""
MAX_KEY_BYTES = 4096


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
            text = opened.read(MAX_KEY_BYTES).decode("ascii", "replace").strip()
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from None
    return Secret(text, source=f"the content of {file}").reveal()
