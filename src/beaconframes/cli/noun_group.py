"""A group with a command for every loader: what load, plan and export are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli import nouns

if TYPE_CHECKING:
    from collections.abc import Callable

    from beaconframes.cli.nouns import Loader


class Nouns(click.Group):
    """A command for every loader, by its noun; with ``--v2`` anywhere for generation 2."""

    def __init__(
        self,
        *,
        build: Callable[[str, Loader], click.Command],
        pictures: bool = True,
        **attributes: Any,
    ) -> None:
        """Make the command of a noun with *build*; without *pictures*, only where it has rows."""
        # Eager, so that --help behind it tells of the nouns of that generation.
        first = click.Option(
            ["--v2"], is_flag=True, is_eager=True, help="Nouns of generation 2 of the service."
        )
        super().__init__(
            params=[first],
            subcommand_metavar="NOUN [OPTIONS]",
            invoke_without_command=True,
            callback=help_without_noun,
            **attributes,
        )
        self.build = build
        self.pictures = pictures

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the nouns of the generation that is asked for."""
        known = nouns.nouns(2 if ctx.params.get("v2") else 1)
        return [*self.commands, *(noun for noun in known if self.pictures or noun != "chart")]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; which generation may be said behind the noun."""
        if "--v2" in args[1:]:
            ctx.params["v2"] = True
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Make the command of a noun."""
        from beaconframes.cli import everywhere

        if cmd_name in self.commands:
            return everywhere(self.commands[cmd_name])
        noun = cmd_name.removeprefix("v2.")
        generation = 2 if noun != cmd_name or ctx.params.get("v2") else 1
        loader = nouns.loader_of(noun, generation)
        if loader is not None and nouns.gives_a_picture(loader) and not self.pictures:
            return None
        if loader is None:
            if generation == 1 and nouns.loader_of(noun, 2) is not None:
                ctx.fail(f"{noun} is of generation 2: add --v2.")
            return None
        made = self.build(noun.replace("_", "-"), loader)
        made.short_help = nouns.title(loader)
        again = click.Option(["--v2"], is_flag=True, expose_value=False, help="Generation 2.")
        made.params.append(again)
        return everywhere(made)


@click.pass_context
def help_without_noun(context: click.Context, /, **_: Any) -> None:
    """Say which nouns there are if none was given."""
    if context.invoked_subcommand is None:
        raise click.exceptions.NoArgsIsHelpError(context)
