"""``beaconframes load NOUN``: every loader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli import asking, nouns, results
from beaconframes.cli.noun_group import Nouns
from beaconframes.cli.running import state
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from beaconframes.cli.nouns import Loader


def command(noun: str, loader: Loader) -> click.Command:
    """Return the command that calls *loader*."""
    strict = click.Option(
        ["--strict"], is_flag=True, help="Give nothing if rows are missing, instead of the others."
    )
    picture = nouns.gives_a_picture(loader)
    return click.Command(
        noun,
        params=[
            *nouns.options(loader),
            *(results.picture_options() if picture else [strict, *results.options()]),
            *asking.options(),
        ],
        help=nouns.summary(loader),
        callback=lambda **given: (save_picture if picture else load_rows)(loader, given),
    )


def load_rows(loader: Loader, given: dict[str, Any]) -> None:
    """Load rows and give them to whom the command line says."""
    said = results.taken(given)
    asked = nouns.values(loader, given)
    strict = given.pop("strict")
    if said["columns"] is not None:
        known(loader, said)
    with asking.connected(given) as explorer:
        rows = loader(**asked, explorer=explorer, **({"strict": True} if strict else {}))
        requests = explorer.requests
    results.give(rows, said, {"loader": loader.__name__, "requests": requests})


def known(loader: Loader, said: dict[str, Any]) -> None:
    """Refuse columns that are not there before anything is asked, where they are published."""
    from beaconframes.exports.loader_calls import endpoint_of

    endpoint = endpoint_of(loader)
    if endpoint is not None and not endpoint.table.keeps_every_field:
        results.shaped(endpoint.table.empty(), said)


def save_picture(loader: Loader, given: dict[str, Any]) -> None:
    """Load a picture into a file."""
    from beaconframes.cli.showing import write_json
    from beaconframes.wall import save

    out, overwrite, as_json = (given.pop(name) for name in ("out", "overwrite", "as_json"))
    if out is None or out.suffix.lower() != ".png":
        raise UsageError("a picture needs --out, a PNG file", hint="Such as: --out chart.png")
    results.free(out, overwrite=overwrite)
    asked = nouns.values(loader, given)
    with asking.connected(given) as explorer:
        picture = loader(**asked, explorer=explorer)
    save(picture, out)
    if as_json:
        facts = {"file": str(out), "bytes": out.stat().st_size}
        write_json({**results.told(state()), "loader": loader.__name__, **facts})
    else:
        click.echo(f"{click.format_filename(out)}: {picture.width} x {picture.height}")


load = Nouns(
    name="load",
    build=command,
    help="""Load rows and show them, or write them to a file.

    NOUN is a loader without load_: load income-history is load_income_history. Moments are as in
    Python: an epoch, slot or day (negative ones count back from the latest), a date, a time in UTC,
    or 30d and 12h for that long before now.
    """,
)
