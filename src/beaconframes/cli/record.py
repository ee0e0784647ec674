"""``beaconframes record``: what the service forgets, into the store, for as long as one likes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli import asking, nouns
from beaconframes.cli.running import say, state
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from beaconframes.calendar import Chain

OPTIONS: list[click.Parameter] = [
    click.Argument(["what"], type=click.Choice(["attestations"])),
    click.Option(
        ["--validators"],
        required=True,
        multiple=True,
        metavar="LIST",
        help="Indices or public keys with commas between; 1-100 is a range, - standard input.",
    ),
    click.Option(
        ["--until"], metavar="WHEN", help="The last epoch, or a time to come; else without end."
    ),
    click.Option(["--for", "for_"], metavar="HOW LONG", help="For how long instead, such as 7d."),
    click.Option(
        ["--every"], type=int, default=48, show_default=True, help="Epochs between two polls."
    ),
    click.Option(["--slim"], is_flag=True, help="Leave out the committees, for half the bytes."),
    click.Option(["--json", "as_json"], is_flag=True, help="Write JSON, for machines."),
]


@click.command(params=[*OPTIONS, *asking.options()])
def record(
    what: str,
    validators: tuple[str, ...],
    until: str | None,
    for_: str | None,
    every: int,
    slim: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Record attestation duties, soon gone from the service.

    The service has them for some ten hours. Polls again and again, keeps in the store what is
    final, and ends at --until, after --for, or on Ctrl-C. What was recorded stays, and load
    attestations has it from then on, for any range. At the end it tells which epochs of whom are
    kept, which are absent since the service has nothing of them, still open, and lost for good.
    """
    from beaconframes.cli import signals
    from beaconframes.cli.results import told
    from beaconframes.cli.showing import write_json, write_table
    from beaconframes.v1._record import record as run

    named = nouns.NUMBERS.value("--validators", validators)
    end = None if until is None else nouns.moment("--until", until)
    with asking.connected(given) as explorer, signals.gently() as came:
        if isinstance(end, str):
            begun(end, explorer.chain)
        rows = run(what, named, until=end, for_=for_, every=every, slim=slim, explorer=explorer)
    now = state()
    lacking = {name: int((rows["state"] == name).sum()) for name in ("open", "lost")}
    now.incomplete = any(lacking.values())
    if as_json:
        write_json({**told(now), "rows": rows.height}, rows)
    else:
        write_table(rows, rows.height)
    if now.incomplete:
        say(f"warning: {lacking['open']:,} runs of epochs are open and {lacking['lost']:,} lost")
    if came:
        raise signals.Stopped(128 + came[0])


def begun(until: str, chain: Chain) -> None:
    """Refuse an end before the chain began."""
    from datetime import UTC, datetime

    from beaconframes.calendar import instants

    _, end = instants("until", until, lambda: datetime.now(UTC))
    if end < chain.genesis:
        raise UsageError(
            f"--until {until} is before {chain.name} began",
            hint="Give an epoch, or a time to come",
        )
