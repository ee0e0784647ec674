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

COMMANDS = {
    "load": "Load rows and print them, or write them to a file.",
    "plan": "Estimate the number of requests and the duration of a load.",
    "quota": "Print the limits of the key, and the remaining requests.",
    "export": "Export rows as a dataset, or as one file.",
    "analyse": "Analyse loaded rows, or rows in files.",
    "report": "Report how validators did, as a page, as JSON or as a notebook.",
    "plot": "Draw a chart of loaded rows, or of rows in a file.",
    "wall": "Draw the graffiti wall, pixel by pixel, and plan pictures on it.",
    "store": "Show and maintain the store of final rows.",
    "record": "Store attestation duties before the service deletes them.",
    "index": "Write the chain of a beacon node into a dataset.",
    "demo": "Serve a simulated chain, load it, draw it, save it.",
    "serve": "Serve the API of the explorer from a dataset.",
    "simulate": "Simulate a chain and write it as a dataset.",
    "dictionary": "Print the columns of a loader, or the loaders with a column.",
}
"""All commands with the first sentence of their help; each is in the module with its name."""
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
        state = RunState(debug="--debug" in words, as_json="--json" in words)
        if os.environ.get("NO_COLOR"):
            extra["color"] = False

        def invoke() -> None:
            with self.make_context(name, words, obj=state, **extra) as context:
                self.invoke(context)

        sys.exit(run_command(invoke, state))

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, the most important first."""
        return list(COMMANDS)

    def list_titles(self, ctx: click.Context) -> dict[str, dict[str, str]]:
        """Return the sentence of each command, without an import."""
        return {"Commands": COMMANDS}

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
    except KeyboardInterrupt:
        sys.exit(signals.report_stop())
