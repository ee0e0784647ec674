"""The command line: ``beaconframes``, or ``python -m beaconframes``.

Each command is a module of this package. It is imported on first use, and imports heavy libraries
when it runs.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any, NoReturn

import click

from beaconframes.cli import exit_codes
from beaconframes.cli.common_options import SuggestingGroup, add_common_options
from beaconframes.cli.runner import RunState, run_command

COMMANDS = (
    "load",
    "plan",
    "quota",
    "export",
    "analyse",
    "report",
    "plot",
    "wall",
    "store",
    "record",
    "index",
    "demo",
    "serve",
    "simulate",
    "dictionary",
    "completion",
)
"""All commands; each is an object of the module with its name."""
SPELLINGS = {"analyze": "analyse", "describe": "dictionary", "loaders": "dictionary"}
"""Other spellings of commands, and names of the same functions in Python."""
GROUPS = ("load", "analyse", "plot")
"""Groups whose name users may omit: ``income`` is ``analyse income`` or ``plot income``."""


class CommandGroup(SuggestingGroup):
    """The group of all commands; each ends with an exit code, and prints an error as one line."""

    def main(  # type: ignore[override]
        self,
        args: Any = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        **extra: Any,
    ) -> NoReturn:
        """Run the command line, and exit."""
        words = sys.argv[1:] if args is None else list(args)
        name = prog_name or "beaconframes"
        self._main_shell_completion({}, name, complete_var)
        state = RunState(debug="--debug" in words)
        extra = {key: value for key, value in extra.items() if key != "standalone_mode"}
        if os.environ.get("NO_COLOR"):
            extra["color"] = False

        def invoke() -> None:
            with self.make_context(name, words, obj=state, **extra) as context:
                self.invoke(context)

        sys.exit(run_command(invoke, state))

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, the most important first."""
        return list(COMMANDS)

    def find_similar(self, ctx: click.Context, name: str) -> list[str]:
        """Return the commands of this name in groups; else the one with the most similar name."""
        groups = ((group, self.get_command(ctx, group)) for group in GROUPS)
        found = [
            f"{group} {name}"
            for group, command in groups
            if isinstance(command, click.Group) and name in command.list_commands(ctx)
        ]
        return found or super().find_similar(ctx, name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        name = SPELLINGS.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        module = import_module(f"beaconframes.cli.{name}")
        command: click.Command = getattr(module, name)
        return add_common_options(command)


@click.group(
    "beaconframes",
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=exit_codes.format_epilog(),
)
@click.version_option(package_name="beaconframes")
def commands() -> None:
    """Load Ethereum beacon chain data into DataFrames."""


add_common_options(commands)


def main() -> NoReturn:
    """Run the command line as a program."""
    from beaconframes.cli import signals

    signals.install_handlers()
    for stream in (sys.stdout, sys.stderr):
        # Characters that the terminal cannot encode become escapes.
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        commands.main(prog_name="beaconframes")
    except signals.StoppedBySignal:
        signals.report_stop()
        raise
