"""``beaconframes store``: show and maintain the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import click

from beaconframes.cli import exit_codes
from beaconframes.cli.connection_options import connection_options
from beaconframes.cli.from_signature import command
from beaconframes.cli.loader_options import table_name_of
from beaconframes.cli.messages import print_message
from beaconframes.cli.rendering import list_lines, print_result
from beaconframes.client import Subjects  # noqa: TC001 - for get_type_hints
from beaconframes.errors import DatasetError, UsageError
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from beaconframes.client import Store
    from beaconframes.dataset import Damage

LOCATION = [each for each in connection_options() if each.name in ("url", "chain", "store")]
"""The options that locate the store; no request is sent, so no key is needed."""
UNIT = click.IntRange(min=0)


def open_store(url: str | None, chain: str | None, store: Path | None) -> Store:
    """Open the store of the settings, which must exist."""
    from beaconframes.client.explorer import RequestlessExplorer
    from beaconframes.client.store import store as find_store
    from beaconframes.config import current

    # Also of a service on this machine, whose rows are not stored by default.
    chosen = True if store is None and current().store is None else store
    with RequestlessExplorer(url, chain=chain, store=chosen) as explorer:
        opened = find_store(explorer)
    if opened.dataset is None:
        stores = sorted(str(found.parent) for found in opened.path.parent.glob("*/ledger.sqlite"))
        raise DatasetError(
            f"the store {opened.path} does not exist",
            hint=f"--store names another one: {', '.join(stores) or 'there is none beside it'}",
        )
    return opened


def find_table(store: Store, table: str) -> str:
    """Return the name of a table in the store, or refuse an unknown one."""
    name = table_name_of(table)
    tables = store.tables()["table"].to_list()
    if name not in tables:
        raise UsageError(
            f"{store.path} has no table {table!r}", hint=f"Tables: {', '.join(tables) or 'none'}"
        )
    return name


@command(*LOCATION)
def show(table: str | None = None, **location: Any) -> None:
    """Print the tables of the store, or the coverage of TABLE."""
    store = open_store(**location)
    table = None if table is None else find_table(store, table)
    rows = store.tables() if table is None else store.coverage(table)
    title = f"{click.format_filename(store.path)}: {store.size:,} bytes"
    facts = {"path": str(store.path), "bytes": store.size, "table": table}
    print_result(facts, [title, *list_lines(rows)], rows)


@command(*LOCATION)
def verify(**location: Any) -> None:
    """Read all files, and list the damaged ones."""
    damaged = open_store(**location).verify()
    print_damage(damaged, sound=not damaged)
    if damaged:
        print_message(f"{len(damaged):,} files are damaged; store mend removes their rows")
        click.get_current_context().exit(exit_codes.FILE_ERROR)


@command(*LOCATION)
def mend(**location: Any) -> None:
    """Remove damaged files; the next load requests their rows again."""
    print_damage(open_store(**location).mend(), sound=True)


def print_damage(damaged: list[Damage], *, sound: bool) -> None:
    """Print the damaged files."""
    entries = [{"table": d.table, "file": d.path, "reason": d.reason} for d in damaged]
    lines = [visible(f"{d.table}: {d.path} {d.reason}") for d in damaged]
    print_result({"sound": sound, "damaged": entries}, lines or ["no file is damaged"])


@command(*LOCATION)
def compact(**location: Any) -> None:
    """Merge many small files into few large ones."""
    store = open_store(**location)
    change_store(store, store.compact)


@command(*LOCATION)
def prune(
    table: str | None = None,
    *,
    everything: Annotated[bool, "--all"] = False,
    validators: Subjects | None = None,
    first: Annotated[int | None, UNIT] = None,
    last: Annotated[int | None, UNIT] = None,
    older_than: Annotated[str | None, "TIME"] = None,
    to: Annotated[str | None, "SIZE"] = None,
    **location: Any,
) -> None:
    """Remove TABLE, some of its rows, or what was stored first.

    Parameters
    ----------
    everything
        Remove all rows.
    validators
        Only these validators.
    first
        First epoch, slot or day to remove.
    last
        Last epoch, slot or day to remove.
    older_than
        What was stored before this age or date, such as 90d or 2026-01-31.
    to
        What was stored first, until 2GB, say, are left.
    """
    choices = {"first": first, "last": last, "older_than": older_than, "to": to}
    limits: dict[str, Any] = {n: limit for n, limit in choices.items() if limit is not None}
    if everything and (table is not None or validators or limits):
        raise UsageError("--all excludes all other choices", hint="Leave it or them out")
    if table is None and not everything and not limits.keys() & {"older_than", "to"}:
        raise UsageError(
            "prune needs a table, --all, --older-than or --to", hint="store show lists the tables"
        )
    store = open_store(**location)
    name = None if table is None else find_table(store, table)
    before = store.coverage(name or "")
    change_store(store, lambda: store.prune(name, validators, **limits))
    if name is not None and before.equals(store.coverage(name)):
        print_message(f"{name} has no such rows; nothing was removed")


def change_store(store: Store, change: Callable[[], None]) -> None:
    """Change the store, and print its numbers of rows and files before and after."""
    before = store.tables()
    change()
    after = store.tables()
    counts = {
        "rows_before": int(before["rows"].sum()),
        "rows": int(after["rows"].sum()),
        "segments_before": int(before["segments"].sum()),
        "segments": int(after["segments"].sum()),
    }
    line = (
        f"{counts['rows_before']:,} rows in {counts['segments_before']:,} files before, "
        f"{counts['rows']:,} rows in {counts['segments']:,} files now"
    )
    print_result({"path": str(store.path), **counts}, [line])


store = click.Group(
    "store",
    commands=[show, verify, mend, compact, prune],
    help="Show and maintain the store of final rows.",
)
