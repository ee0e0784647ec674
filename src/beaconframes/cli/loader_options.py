"""Loaders as commands: their names, titles by subject, options, and the groups of commands."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli import from_signature
from beaconframes.cli.common_options import SuggestingGroup, add_common_options
from beaconframes.misspelled_names import SYNONYMS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

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
    """Return the loader with a name, such as ``v2.rewards``; None if there is none."""
    import beaconframes

    short = name.removeprefix("v2.").replace("_", "-")
    is_v2 = version == 2 or name.startswith("v2.")
    if short not in list_loaders(2 if is_v2 else 1):
        return None
    module = beaconframes.v2 if is_v2 else beaconframes
    loader: Loader = getattr(module, f"load_{short.replace('-', '_')}")
    return loader


def require_loader(name: str) -> Loader:
    """Return the loader with a name that exists."""
    loader = find_loader(name)
    assert loader is not None
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


class LoaderGroup(SuggestingGroup):
    """A group with one command for each loader; ``--v2`` anywhere selects the loaders of V2."""

    def __init__(
        self,
        *,
        build: Callable[[str, Loader], click.Command],
        others: Mapping[str, tuple[str, Callable[[], click.Command]]] | None = None,
        **attributes: Any,
    ) -> None:
        """Build the commands of loaders with *build*.

        *others* are further commands: a title, and the function that builds each.
        """
        # Eager, so that a --help after it lists the loaders of V2.
        text = "Loaders of V2; also after the name of the loader."
        version = click.Option(["--v2"], is_flag=True, is_eager=True, help=text)
        super().__init__(
            params=[version],
            subcommand_metavar="LOADER [OPTIONS]",
            **attributes,
        )
        self.build = build
        self.others = others or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the loaders of the selected version."""
        return [name for titles in self.list_titles(ctx).values() for name in titles]

    def list_titles(self, ctx: click.Context) -> dict[str, dict[str, str]]:
        """Return the title of each loader of the selected version, by subject."""
        others = {name: title for name, (title, _) in self.others.items()}
        return {"Commands": others, **read_titles(2 if ctx.params.get("v2") else 1)}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse --v2 first: it may come after the name of the loader."""
        rest = super().parse_args(ctx, sorted(args, key=lambda word: word != "--v2"))
        if args == ["--v2"] and not ctx.resilient_parsing:
            raise click.exceptions.NoArgsIsHelpError(ctx)
        return rest

    def find_similar(self, ctx: click.Context, name: str) -> list[str]:
        """Return the loaders of the same meaning, or the loader with the most similar name."""
        meant = SYNONYMS.get(f"load_{name.replace('-', '_')}", ())
        loaders = [each.replace("load_", "").replace("_", "-") for each in meant]
        return loaders or super().find_similar(ctx, name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Build the command of a loader."""
        if cmd_name in self.others:
            return add_common_options(self.others[cmd_name][1]())
        loader = find_loader(cmd_name, 2 if ctx.params.get("v2") else 1)
        if loader is None:
            if find_loader(cmd_name, 2) is not None:
                ctx.fail(f"{cmd_name} is a loader of V2: add --v2.")
            return None
        name = cmd_name.removeprefix("v2.").replace("_", "-")
        return add_common_options(self.build(name, loader))
