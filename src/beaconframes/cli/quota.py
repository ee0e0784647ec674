"""``beaconframes quota``: what a key may ask for, and what is left of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from beaconframes.cli import asking
from beaconframes.text import visible

AS_JSON = click.Option(["--json", "as_json"], is_flag=True, help="Write JSON, for machines.")


@click.command(params=[AS_JSON, *asking.options()])
def quota(as_json: bool, **given: Any) -> None:
    """Tell how many requests are permitted, and are left.

    Nothing is asked: the figures are those that the service told last, and what was counted since.
    """
    from beaconframes.cli.showing import write_json
    from beaconframes.client import quota as known

    with asking.connected(given) as explorer:
        found = known(explorer)
    if as_json:
        write_json(asdict(found))
        return
    for line in str(found).splitlines():
        click.echo(visible(line))
