"""``beaconframes store``: show and maintain the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli import exit_codes
from beaconframes.cli.argument_texts import check_validator, parse_list
from beaconframes.cli.common_options import json_option
from beaconframes.cli.connection_options import connection_options
from beaconframes.cli.loader_options import table_name_of
from beaconframes.cli.messages import print_message
from beaconframes.cli.rendering import print_json, print_table
from beaconframes.errors import ConfigError, DatasetError, UsageError
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from beaconframes.client import Store
    from beaconframes.dataset import Damage

LOCATION = ("url", "chain", "store")
"""The options that locate the store; no request is sent, so no key is needed."""


def open_store(url: str | None, chain: str | None, store: Any) -> Store:
    """Open the store of the settings, which must exist."""
    from beaconframes.calendar import get_chain
    from beaconframes.client import Store
    from beaconframes.client.defaults import create_local_store, find_chain_of_store, public_url
    from beaconframes.config import current, is_chain_given

    settings = current(url=url, chain=chain, store=store)
    if settings.store is False:
        raise ConfigError(
            "the store is turned off", hint="Unset BEACONFRAMES_STORE, or give --store"
        )
    chain_of_store = get_chain(settings.chain)
    url_of_store = settings.url or public_url(chain_of_store, has_key=True)
    if not is_chain_given(chain):
        chain_of_store = find_chain_of_store(settings.store, url_of_store) or chain_of_store
    local_store = create_local_store(
        settings.store,
        url_of_store,
        chain_of_store,
        needed=True,
    )
    assert local_store is not None
    opened = Store(local_store.path)
    if opened.dataset is None:
        raise DatasetError(
            f"the store {local_store.path} does not exist", hint=suggest_store(local_store.path)
        )
    return opened


def suggest_store(path: Path) -> str:
    """Return a hint with the stores beside *path*."""
    root = path.parent
    if root.is_file():
        return f"{root} is a file"
    stores = ", ".join(str(ledger.parent) for ledger in sorted(root.glob("*/ledger.sqlite")))
    if stores:
        return f"Give one of the existing stores with --store: {stores}"
    if root.is_dir():
        return "The first load creates it"
    return f"The folder {root} does not exist"


def find_table(store: Store, table: str) -> str:
    """Return the name of a table in the store, or refuse an unknown one."""
    name = table_name_of(table)
    tables = store.tables()["table"].to_list()
    if name not in tables:
        raise UsageError(
            f"{store.path} has no table {table!r}", hint=f"Tables: {', '.join(tables) or 'none'}"
        )
    return name


def build_command(
    name: str, action: Callable[..., Any], *parameters: click.Parameter
) -> click.Command:
    """Return a command that calls *action* with the store."""

    def invoke(**values: Any) -> None:
        opened = open_store(**{option: values.pop(option) for option in LOCATION})
        if code := action(opened, **values):
            click.get_current_context().exit(code)

    return click.Command(
        name,
        params=[
            *parameters,
            json_option(),
            *(option for option in connection_options() if option.name in LOCATION),
        ],
        help=action.__doc__,
        callback=invoke,
    )


def show(store: Store, *, table: str | None, as_json: bool) -> None:
    """Print the tables of the store, or the coverage of TABLE."""
    table = None if table is None else find_table(store, table)
    rows = store.tables() if table is None else store.coverage(table)
    if as_json:
        print_json({"path": str(store.path), "bytes": store.size, "table": table}, rows)
        return
    click.echo(f"{click.format_filename(store.path)}: {store.size:,} bytes")
    print_table(rows, rows.height)


def verify(store: Store, *, as_json: bool) -> int:
    """Read all files, and list the damaged ones."""
    damaged = store.verify()
    print_damage(damaged, as_json=as_json, sound=not damaged)
    if not damaged:
        return exit_codes.SUCCESS
    print_message(f"{len(damaged):,} files are damaged; store mend removes their rows")
    return exit_codes.FILE_ERROR


def mend(store: Store, *, as_json: bool) -> None:
    """Remove damaged files; the next load requests their rows again."""
    print_damage(store.mend(), as_json=as_json, sound=True)


def print_damage(damaged: list[Damage], *, as_json: bool, sound: bool) -> None:
    """Print the damaged files."""
    if as_json:
        entries = [{"table": d.table, "file": d.path, "reason": d.reason} for d in damaged]
        print_json({"sound": sound, "damaged": entries})
        return
    for damage in damaged:
        click.echo(visible(f"{damage.table}: {damage.path} {damage.reason}"))
    if not damaged:
        click.echo("no file is damaged")


def compact(store: Store, *, as_json: bool) -> None:
    """Merge many small files into few large ones."""
    change_store(store, store.compact, as_json=as_json)


def prune(
    store: Store,
    *,
    table: str | None,
    everything: bool,
    validators: tuple[str, ...],
    first: int | None,
    last: int | None,
    older_than: str | None,
    to: str | None,
    as_json: bool,
) -> None:
    """Remove TABLE, some of its rows, or what was stored first."""
    has_choice = bool(validators) or first is not None or last is not None
    if older_than is not None or to is not None:
        if table is not None or everything or has_choice:
            raise UsageError("--older-than and --to exclude all other choices")
        change_store(store, lambda: store.prune(older_than=older_than, to=to), as_json=as_json)
        return
    if (table is None) != everything:
        raise UsageError(
            "prune needs a table, --all, --older-than or --to", hint="store show lists the tables"
        )
    if everything and has_choice:
        raise UsageError("--all excludes all other choices", hint="Name a table")
    if first is not None and last is not None and first > last:
        raise UsageError(f"--first {first} is after --last {last}", hint="Swap them")
    ends = {name: end for name, end in (("first", first), ("last", last)) if end is not None}
    if table is None:
        change_store(store, store.prune, as_json=as_json)
        return
    name = find_table(store, table)
    subjects = None
    if validators:
        subjects = resolve_subjects(
            store, name, parse_list("--validators", validators, check_validator)
        )
    before = store.coverage(name)
    change_store(store, lambda: store.prune(name, subjects, **ends), as_json=as_json)
    if before.equals(store.coverage(name)):
        print_message(f"{name} has no such rows; nothing was removed")


def resolve_subjects(store: Store, table: str, validators: list[int | str]) -> list[str]:
    """Return *validators* as *table* names them: by index, or by public key."""
    from beaconframes.cache import pubkey_index
    from beaconframes.endpoint.identifiers import is_pubkey, normalize_validators

    texts = normalize_validators(validators)
    assert store.dataset is not None
    subject = store.dataset.grids()[table].subject
    if subject is None:
        raise UsageError(f"{table} has no validators", hint="Leave --validators out")
    if subject == "pubkey":
        return texts
    rows = store.dataset.scan(pubkey_index.TABLE, schema=pubkey_index.SCHEMA).collect()
    index_by_pubkey = dict(rows.select("pubkey", "validator_index").iter_rows())
    for text in texts:
        if is_pubkey(text) and text not in index_by_pubkey:
            raise UsageError(
                f"the store does not have the index of {text}", hint="Give the index instead"
            )
    return [str(index_by_pubkey.get(text, text)) for text in texts]


def change_store(store: Store, change: Callable[[], None], *, as_json: bool) -> None:
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
    if as_json:
        print_json({"path": str(store.path), **counts})
    else:
        click.echo(
            f"{counts['rows_before']:,} rows in {counts['segments_before']:,} files before, "
            f"{counts['rows']:,} rows in {counts['segments']:,} files now"
        )


UNIT = click.IntRange(min=0)
store = click.Group(
    "store",
    commands=[
        build_command("show", show, click.Argument(["table"], required=False)),
        build_command("verify", verify),
        build_command("mend", mend),
        build_command("compact", compact),
        build_command(
            "prune",
            prune,
            click.Argument(["table"], required=False),
            click.Option(["--all", "everything"], is_flag=True, help="Remove all rows."),
            click.Option(
                ["--validators"], multiple=True, metavar="LIST", help="Only these validators."
            ),
            click.Option(["--first"], type=UNIT, help="First epoch, slot or day to remove."),
            click.Option(["--last"], type=UNIT, help="Last epoch, slot or day to remove."),
            click.Option(
                ["--older-than"],
                metavar="TIME",
                help="What was stored before this age or date, such as 90d or 2026-01-31.",
            ),
            click.Option(
                ["--to"], metavar="SIZE", help="What was stored first, until 2GB, say, are left."
            ),
        ),
    ],
    no_args_is_help=True,
    callback=lambda **_: None,
    help="Show and maintain the store of final rows.",
)
