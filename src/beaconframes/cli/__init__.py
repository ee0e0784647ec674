"""The command line: ``beaconframes``, or ``python -m beaconframes``.

A command is a module of this package, imported when it is asked for; it imports what is heavy only
when it runs. ``exits`` has the statuses, ``running`` turns errors into lines.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any, NoReturn

import click

from beaconframes.cli import exits, running

COMMANDS = {
    "load": "load",
    "plan": "plan",
    "quota": "quota",
    "export": "export",
    "plot": "plot",
    "wall": "wall",
    "store": "store",
    "record": "record",
    "demo": "demo",
    "serve": "serve",
    "simulate": "simulate",
    "dictionary": "dictionary",
    "completion": "completion",
}
"""Where each command is."""


class Commands(click.Group):
    """All commands; however one ends, it ends with a status and at most one line."""

    def main(  # type: ignore[override]
        self,
        args: Any = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        **extra: Any,
    ) -> NoReturn:
        """Run what the command line says, and exit."""
        words = sys.argv[1:] if args is None else list(args)
        name = prog_name or "beaconframes"
        self._main_shell_completion({}, name, complete_var)
        now = running.State(debug="--debug" in words)
        extra = {key: value for key, value in extra.items() if key != "standalone_mode"}
        if os.environ.get("NO_COLOR"):
            extra["color"] = False

        def work() -> None:
            with self.make_context(name, words, obj=now, **extra) as context:
                self.invoke(context)

        sys.exit(running.run(work, now))

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return their names, in the order in which one needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"beaconframes.cli.{COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, COMMANDS[cmd_name])
        return everywhere(command)


def everywhere(command: click.Command) -> click.Command:
    """Let *command* and those below it take what every command takes."""
    if not any(parameter.name == "debug" for parameter in command.params):
        command.params += [
            click.Option(
                ["--debug"],
                is_flag=True,
                expose_value=False,
                help="Show the traceback of an error.",
            ),
            click.Option(
                ["--no-color"],
                is_flag=True,
                expose_value=False,
                callback=lambda context, _option, chosen: colour(context, off=chosen),
                help="Write no colours.",
            ),
        ]
        for below in getattr(command, "commands", {}).values():
            everywhere(below)
    return command


def colour(context: click.Context, *, off: bool) -> None:
    """Switch colours off for good; they are on where a terminal is."""
    if off:
        context.color = False
        context.find_root().color = False


@click.group(
    "beaconframes",
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=exits.epilog(),
)
@click.version_option(package_name="beaconframes")
def commands() -> None:
    """Turn a proof-of-stake chain explorer into DataFrames."""


everywhere(commands)


def main() -> NoReturn:
    """Run the command line, as the program that it is."""
    from beaconframes.cli import signals

    signals.obey()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that knows few letters shows the others as escapes.
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        commands.main(prog_name="beaconframes")
    except signals.Stopped:
        signals.tell()
        raise
