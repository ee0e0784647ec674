"""``beaconframes completion``: what a shell needs to complete commands and options."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    r"""Write what lets SHELL complete a command line.

    \b
    bash  beaconframes completion bash >> ~/.bashrc
    zsh   beaconframes completion zsh >> ~/.zshrc
    fish  beaconframes completion fish > ~/.config/fish/completions/beaconframes.fish
    """
    from click.shell_completion import get_completion_class

    from beaconframes.cli import commands

    made = get_completion_class(shell)
    assert made is not None
    found = made(commands, {}, "beaconframes", "_BEACONFRAMES_COMPLETE")
    # As a template: what click's own source() does first is to run bash, for its version.
    click.echo(found.source_template % found.source_vars())
