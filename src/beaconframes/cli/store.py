"""``beaconframes store``: what is kept, and how to look after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli import asking, exits, subjects
from beaconframes.cli.running import say
from beaconframes.errors import ConfigError, UsageError
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from beaconframes.client import Store
    from beaconframes.dataset import Damage

WHERE = ("url", "chain", "store")
"""What tells which store it is; nothing is sent, so that no key is needed."""


def opened(url: str | None, chain: str | None, store: Any) -> Store:
    """Return the store that the settings mean."""
    from beaconframes.calendar import get_chain
    from beaconframes.client import Store
    from beaconframes.client.whereabouts import public_url, shelf_of
    from beaconframes.config import current

    settings = current(url=url, chain=chain, store=store)
    if settings.store is False:
        raise ConfigError("there is no store", hint="Unset BEACONFRAMES_STORE, or give --store")
    known = get_chain(settings.chain)
    shelf = shelf_of(
        settings.store, settings.url or public_url(known, has_key=True), known, needed=True
    )
    assert shelf is not None
    return Store(shelf.path)


def command(name: str, action: Callable[..., Any], *params: click.Parameter) -> click.Command:
    """Return a command that does something with the store."""

    def work(**given: Any) -> None:
        found = opened(**{place: given.pop(place) for place in WHERE})
        ended = action(found, **given)
        if ended:
            click.get_current_context().exit(ended)

    return click.Command(
        name,
        params=[
            *params,
            click.Option(["--json", "as_json"], is_flag=True, help="Write JSON, for machines."),
            *(option for option in asking.options() if option.name in WHERE),
        ],
        help=action.__doc__,
        callback=work,
    )


def show(store: Store, *, table: str | None, as_json: bool) -> None:
    """Show where the store is and what it has; of TABLE, of whom."""
    from beaconframes.cli.showing import write_json, write_table

    rows = store.tables() if table is None else store.coverage(table)
    if as_json:
        write_json({"path": str(store.path), "bytes": store.size, "table": table}, rows)
        return
    click.echo(f"{click.format_filename(store.path)}: {store.size:,} bytes")
    write_table(rows, rows.height)


def verify(store: Store, *, as_json: bool) -> int:
    """Read everything, and name damaged files."""
    return told(store.verify(), as_json=as_json, mended=False)


def mend(store: Store, *, as_json: bool) -> int:
    """Forget damaged files, to be asked for again."""
    return told(store.mend(), as_json=as_json, mended=True)


def told(damaged: list[Damage], *, as_json: bool, mended: bool) -> int:
    """Tell what is damaged; return the status."""
    from beaconframes.cli.showing import write_json

    if as_json:
        found = [{"table": d.table, "file": d.path, "reason": d.reason} for d in damaged]
        write_json({"sound": mended or not damaged, "damaged": found})
    else:
        for one in damaged:
            click.echo(visible(f"{one.table}: {one.path} {one.reason}"))
        if not damaged:
            click.echo("everything is as it was written")
    if damaged and not mended:
        say(f"{len(damaged):,} files are damaged; store mend forgets what they held")
        return exits.FILES
    return exits.DONE


def compact(store: Store, *, as_json: bool) -> None:
    """Make few large files of many small ones."""
    changed(store, store.compact, as_json=as_json)


def prune(
    store: Store,
    *,
    table: str | None,
    everything: bool,
    validators: tuple[str, ...],
    first: int | None,
    last: int | None,
    as_json: bool,
) -> None:
    """Forget TABLE, or some validators, epochs, slots or days."""
    if (table is None) != everything:
        raise UsageError("prune takes either a table or --all", hint="store show lists the tables")
    if everything and (validators or first is not None or last is not None):
        raise UsageError("--all leaves nothing to choose", hint="Name a table")
    names = subjects.read("--validators", validators, subjects.a_word) if validators else None
    ends = {name: end for name, end in (("first", first), ("last", last)) if end is not None}
    changed(store, lambda: store.prune(table, names, **ends), as_json=as_json)


def changed(store: Store, change: Callable[[], None], *, as_json: bool) -> None:
    """Change the store, and tell what that came to."""
    from beaconframes.cli.showing import write_json

    before = store.tables()
    change()
    after = store.tables()
    said = {
        "rows_before": int(before["rows"].sum()),
        "rows": int(after["rows"].sum()),
        "segments_before": int(before["segments"].sum()),
        "segments": int(after["segments"].sum()),
    }
    if as_json:
        write_json({"path": str(store.path), **said})
    else:
        click.echo(
            f"{said['rows_before']:,} rows in {said['segments_before']:,} files before, "
            f"{said['rows']:,} rows in {said['segments']:,} files now"
        )


UNIT = click.IntRange(min=0)
store = click.Group(
    "store",
    commands=[
        command("show", show, click.Argument(["table"], required=False)),
        command("verify", verify),
        command("mend", mend),
        command("compact", compact),
        command(
            "prune",
            prune,
            click.Argument(["table"], required=False),
            click.Option(["--all", "everything"], is_flag=True, help="Forget everything."),
            click.Option(["--validators"], multiple=True, metavar="LIST", help="Only of these."),
            click.Option(["--first"], type=UNIT, help="First epoch, slot or day to forget."),
            click.Option(["--last"], type=UNIT, help="Last epoch, slot or day to forget."),
        ),
    ],
    no_args_is_help=True,
    callback=lambda **_: None,
    help="Look after what is kept of what was loaded.",
)
