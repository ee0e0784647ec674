"""Loaders as commands: their names, titles by subject, and the options of their arguments."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli import from_signature

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from beaconframes.cli.from_signature import Argument

    Loader = Callable[..., Any]

NOT_OPTIONS = ("explorer", "strict", "lazy", "frame", "max_requests")
"""Arguments of loaders that no command has, or that it has for every loader."""
TITLES_FILE = Path(__file__).with_name("loader_titles.json")
"""A generated file, so that listing the loaders is fast."""


@cache
def read_titles(version: int) -> dict[str, dict[str, str]]:
    """Return the loaders of V1 or V2 by subject: their names, each with a title."""
    titles: dict[str, dict[str, dict[str, str]]] = json.loads(
        TITLES_FILE.read_text(encoding="utf-8")
    )
    return titles[f"v{version}"]


def list_loaders(version: int = 1) -> list[str]:
    """Return the names of the loaders of V1 or V2, such as ``income-history``."""
    return [name for titles in read_titles(version).values() for name in titles]


def find_loader(name: str, version: int = 1) -> Loader | None:
    """Return the loader with a name; None if there is none."""
    import beaconframes

    name = name.replace("_", "-")
    if name not in list_loaders(version):
        return None
    module = beaconframes.v2 if version == 2 else beaconframes
    loader: Loader = getattr(module, f"load_{name.replace('-', '_')}")
    return loader


def table_name_of(name: str) -> str:
    """Return the table of a loader in a dataset: ``v2_rewards_list`` for ``v2.rewards-list``."""
    return name.replace("-", "_").replace(".", "_")


def list_arguments(loader: Loader, excluded: Collection[str] = ()) -> dict[str, Argument]:
    """Return the arguments of a loader that become options, except the *excluded* ones."""
    from beaconframes.exports.loader_calls import find_endpoint

    endpoint = find_endpoint(loader)
    choices = {
        name: parameter.choices(name)
        for parameter in (endpoint.parameters if endpoint else ())
        for name in parameter.arguments()
    }
    kinds = {n: from_signature.Kind(type=click.Choice(c)) for n, c in choices.items() if c}
    return from_signature.list_arguments(loader, {*NOT_OPTIONS, *excluded}, kinds=kinds)
