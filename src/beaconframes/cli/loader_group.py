"""A group with one command for each loader: load, plan and export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli.common_options import SuggestingGroup, add_common_options
from beaconframes.cli.loader_options import find_loader, read_titles
from beaconframes.misspelled_names import SYNONYMS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from beaconframes.cli.loader_options import Loader


class LoaderGroup(SuggestingGroup):
    """One command for each loader; ``--v2`` anywhere selects the loaders of V2."""

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
            invoke_without_command=True,
            callback=print_help,
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
        return super().parse_args(ctx, sorted(args, key=lambda word: word != "--v2"))

    def find_similar(self, ctx: click.Context, name: str) -> list[str]:
        """Return the loaders of the same meaning, or the loader with the most similar name."""
        meant = SYNONYMS.get(f"load_{name.replace('-', '_')}", ())
        loaders = [each.replace("load_", "").replace("_", "-") for each in meant]
        return loaders or super().find_similar(ctx, name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Build the command of a loader."""
        if cmd_name in self.others:
            return add_common_options(self.others[cmd_name][1]())
        name = cmd_name.removeprefix("v2.")
        version = 2 if name != cmd_name or ctx.params.get("v2") else 1
        loader = find_loader(name, version)
        if loader is None:
            if version == 1 and find_loader(name, 2) is not None:
                ctx.fail(f"{name} is a loader of V2: add --v2.")
            return None
        return add_common_options(self.build(name.replace("_", "-"), loader))


@click.pass_context
def print_help(context: click.Context, /, **_: Any) -> None:
    """Print the help text, with all loaders, if no loader is given."""
    if context.invoked_subcommand is None:
        raise click.exceptions.NoArgsIsHelpError(context)
