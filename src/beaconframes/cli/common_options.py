"""Options that all commands have, or that several commands share."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli.runner import RunState
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

FILE = click.Path(path_type=Path)


class SuggestingGroup(click.Group):
    """A group of commands; the error for an unknown command suggests similar names."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; raise UsageError for an unknown one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if not error.message.startswith("No such command"):
                raise
            similar = " or ".join(map(repr, self.find_similar(ctx, args[0])))
            end = f"; did you mean {similar}?" if similar else ""
            raise click.UsageError(f"No such command {args[0]!r}{end}", ctx) from None

    def list_titles(self, ctx: click.Context) -> dict[str, dict[str, str]]:
        """Return the title of each command, by the heading of its section in the help."""
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        return {"Commands": {name: c.get_short_help_str(80) for name, c in commands if c}}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections with the commands."""
        for heading, titles in self.list_titles(ctx).items():
            if titles:
                with formatter.section(heading):
                    formatter.write_dl(list(titles.items()))

    def find_similar(self, ctx: click.Context, name: str) -> list[str]:
        """Return the command with the most similar name, in a list; an empty list for none."""
        return get_close_matches(name.replace("_", "-"), self.list_commands(ctx), n=1)


class BuiltGroup(SuggestingGroup):
    """A group whose commands are built on first use."""

    def __init__(
        self,
        name: str,
        *,
        names: Callable[[], Iterable[str]],
        build: Callable[[str], click.Command],
        **attributes: Any,
    ) -> None:
        """Build the command of each of the *names* with *build*."""
        super().__init__(name, **attributes)
        self.names, self.build = names, build

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self.names())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Build a command."""
        name = cmd_name.replace("_", "-")
        return add_common_options(self.build(name)) if name in self.names() else None


def add_common_options(command: click.Command) -> click.Command:
    """Add the option of all commands to *command* and to its subcommands."""
    if any(parameter.name == "debug" for parameter in command.params):
        return command
    option = click.Option(
        ["--debug"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_record_options,
        help="Show the traceback of an error.",
    )
    command.params.append(option)
    for subcommand in getattr(command, "commands", {}).values():
        add_common_options(subcommand)
    return command


def _record_options(context: click.Context, _option: click.Parameter, _chosen: bool) -> None:
    """Record the options of the command, so that messages name them instead of arguments."""
    state = context.find_object(RunState)
    if state is None:
        return
    for parameter in context.command.params:
        if isinstance(parameter, click.Option) and parameter.name:
            state.options[parameter.name] = parameter.opts[0]
    if "key_file" in state.options:
        state.options["api_key"] = state.options["key_file"]


def typed_options() -> set[str]:
    """Return the names of the options on the command line."""
    context = click.get_current_context()
    line = click.core.ParameterSource.COMMANDLINE
    return {name for name in context.params if context.get_parameter_source(name) is line}


def refuse_options(names: Iterable[str], beside: str, *, hint: str) -> None:
    """Refuse options on the command line that have no effect *beside* another choice."""
    if wrong := [name for name in names if name in typed_options()]:
        option = f"--{wrong[0].replace('_', '-')}"
        raise UsageError(f"{beside} and {option} exclude each other", hint=hint)
