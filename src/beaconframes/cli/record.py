"""``beaconframes record``: store attestation duties before the service drops them."""

from __future__ import annotations

from typing import Any

import click

from beaconframes.cli import asking, nouns
from beaconframes.cli.running import say, state

OPTIONS: list[click.Parameter] = [
    click.Argument(["what"], type=click.Choice(["attestations"])),
    click.Option(
        ["--validators"],
        required=True,
        multiple=True,
        metavar="LIST",
        help="Indices or public keys, separated by commas; 1-100 is a range, - standard input.",
    ),
    click.Option(["--until"], metavar="WHEN", help="Last epoch, or a future time. Default: none."),
    click.Option(["--for", "for_"], metavar="DURATION", help="Duration instead, such as 7d."),
    click.Option(["--slim"], is_flag=True, help="Leave out the committees: half the bytes."),
    click.Option(["--json", "as_json"], is_flag=True, help="Write JSON, for machines."),
]


@click.command(params=[*OPTIONS, *asking.options()])
def record(
    what: str,
    validators: tuple[str, ...],
    until: str | None,
    for_: str | None,
    slim: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Record attestation duties before the service drops them.

    The service keeps them for about ten hours. This command loads them at intervals and stores
    the final ones, until --until, --for or Ctrl-C. Recorded rows stay: `load attestations` reads
    them, for any range. The report at the end lists which epochs of each validator are kept,
    absent (the service has no rows), still open, and lost.
    """
    from beaconframes.cli import signals
    from beaconframes.cli.results import told
    from beaconframes.cli.showing import write_json, write_table
    from beaconframes.v1.recorder import record as run

    named = nouns.NUMBERS.value("--validators", validators)
    end = None if until is None else nouns.moment("--until", until)
    with asking.connected(given) as explorer, signals.gently() as came:
        rows = run(what, named, until=end, for_=for_, slim=slim, explorer=explorer)
    counts = {name: int((rows["state"] == name).sum()) for name in ("open", "lost")}
    state().incomplete = any(counts.values())
    if as_json:
        write_json({**told(state()), "rows": rows.height}, rows)
    else:
        write_table(rows, rows.height)
    if state().incomplete:
        say(f"warning: {counts['open']:,} intervals are open and {counts['lost']:,} are lost")
    if came:
        raise signals.Stopped(128 + came[0])
