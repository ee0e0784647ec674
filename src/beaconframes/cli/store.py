"""``beaconframes store``: what is kept, and how to look after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli import asking, exits, nouns, subjects
from beaconframes.cli.running import say
from beaconframes.errors import ConfigError, DatasetError, UsageError
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from beaconframes.client import Store
    from beaconframes.dataset import Damage

WHERE = ("url", "chain", "store")
"""What tells which store it is; nothing is sent, so that no key is needed."""


def opened(url: str | None, chain: str | None, store: Any) -> Store:
    """Return the store that the settings mean, which has to be there."""
    from beaconframes.calendar import get_chain
    from beaconframes.client import Store
    from beaconframes.client.defaults import local_store_of, public_url
    from beaconframes.config import current

    settings = current(url=url, chain=chain, store=store)
    if settings.store is False:
        raise ConfigError("there is no store", hint="Unset BEACONFRAMES_STORE, or give --store")
    known = get_chain(settings.chain)
    local_store = local_store_of(
        settings.store, settings.url or public_url(known, has_key=True), known, needed=True
    )
    assert local_store is not None
    found = Store(local_store.path)
    if found.dataset is None:
        raise DatasetError(
            f"there is no store {local_store.path}", hint=instead_of(local_store.path)
        )
    return found


def instead_of(path: Path) -> str:
    """Say which stores lie where *path* would."""
    root = path.parent
    if root.is_file():
        return f"{root} is a file"
    there = ", ".join(str(ledger.parent) for ledger in sorted(root.glob("*/ledger.sqlite")))
    if there:
        return f"There are others, to be named with --store: {there}"
    return "The first load makes one" if root.is_dir() else f"There is no folder {root}"


def named(store: Store, table: str) -> str:
    """Return what the store calls a table, which may be said as a noun; refuse one that is none."""
    name = nouns.table(table)
    known = store.tables()["table"].to_list()
    if name not in known:
        raise UsageError(
            f"{store.path} has no table {table!r}", hint=f"It has: {', '.join(known) or 'none'}"
        )
    return name


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

    table = None if table is None else named(store, table)
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
    if first is not None and last is not None and first > last:
        raise UsageError(f"--first {first} is after --last {last}", hint="Exchange them")
    ends = {name: end for name, end in (("first", first), ("last", last)) if end is not None}
    if table is None:
        changed(store, store.prune, as_json=as_json)
        return
    name = named(store, table)
    whom = None
    if validators:
        whom = among(store, name, subjects.read("--validators", validators, nouns.one_validator))
    before = store.coverage(name)
    changed(store, lambda: store.prune(name, whom, **ends), as_json=as_json)
    if before.equals(store.coverage(name)):
        say(f"nothing of that is kept in {name}, so that nothing was forgotten")


def among(store: Store, table: str, validators: list[int | str]) -> list[str]:
    """Return *validators* as the subjects of *table*: rows are kept by index, keys by key."""
    from beaconframes.cache import pubkey_index
    from beaconframes.endpoint.identifiers import is_pubkey, normalise

    texts = normalise(validators)
    assert store.dataset is not None
    subject = store.dataset.grids()[table].subject
    if subject is None:
        raise UsageError(f"{table} is not kept by validator", hint="Leave --validators out")
    if subject == "pubkey":
        return texts
    rows = store.dataset.scan(pubkey_index.TABLE, schema=pubkey_index.SCHEMA).collect()
    known = dict(rows.select("pubkey", "validator_index").iter_rows())
    for text in texts:
        if is_pubkey(text) and text not in known:
            raise UsageError(
                f"the store does not know the index of {text}", hint="Name it by its index"
            )
    return [str(known.get(text, text)) for text in texts]


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
