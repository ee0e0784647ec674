"""``beaconframes plan NOUN``: what a load will take."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli import asking, nouns
from beaconframes.cli.noun_group import Nouns
from beaconframes.text import visible

if TYPE_CHECKING:
    from beaconframes.cli.nouns import Loader


def command(noun: str, loader: Loader) -> click.Command:
    """Return the command that plans a call of *loader*."""
    as_json = click.Option(["--json", "as_json"], is_flag=True, help="Write JSON, for machines.")
    return click.Command(
        noun,
        params=[*nouns.options(loader), as_json, *asking.options()],
        help=f"Tell what this will take: {nouns.summary(loader)}",
        callback=lambda **given: tell(loader, given),
    )


def tell(loader: Loader, given: dict[str, Any]) -> None:
    """Tell the plan."""
    from beaconframes.cli.showing import write_json
    from beaconframes.client import plan

    as_json = given.pop("as_json")
    asked = nouns.values(loader, given)
    with asking.connected(given) as explorer:
        found = plan(loader, **asked, explorer=explorer)
    if as_json:
        write_json({**asdict(found), "seconds": found.seconds, "month_share": found.month_share})
    else:
        for line in str(found).splitlines():
            click.echo(visible(line))


plan = Nouns(
    name="plan",
    build=command,
    pictures=False,
    help="""Tell how many requests a load will take, and how long.

    NOUN and its options are as for load. Nothing is loaded.
    """,
)
