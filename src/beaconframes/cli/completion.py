"""``beaconframes completion``: the completion script of a shell."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands and options in SHELL.

    \b
    beaconframes completion bash >> ~/.bashrc
    beaconframes completion zsh >> ~/.zshrc
    beaconframes completion fish > ~/.config/fish/completions/beaconframes.fish
    """  # noqa: D301 - click needs the control character, not its escape
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(context.find_root().command, {}, "beaconframes", "_BEACONFRAMES_COMPLETE")
    # The template itself, because source() of click runs bash to find out its version.
    click.echo(script.source_template % script.source_vars())
