"""``beaconframes load``: call a loader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli import output
from beaconframes.cli.connection_options import connection_options, open_explorer
from beaconframes.cli.docstrings import describe
from beaconframes.cli.loader_group import LoaderGroup
from beaconframes.cli.loader_options import (
    loader_options,
    loads_image,
    pop_arguments,
)
from beaconframes.cli.rendering import print_json
from beaconframes.cli.runner import current_state
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from beaconframes.cli.loader_options import Loader


def build_command(name: str, loader: Loader) -> click.Command:
    """Return the command that calls *loader*."""
    strict = click.Option(
        ["--strict"], is_flag=True, help="Write no rows if any requested rows are missing."
    )
    image = loads_image(loader)
    return click.Command(
        name,
        params=[
            *loader_options(loader),
            *(output.image_options() if image else [strict, *output.output_options()]),
            *connection_options(),
        ],
        help=describe(loader),
        callback=lambda **values: (load_image if image else load_rows)(loader, values),
    )


def load_rows(loader: Loader, values: dict[str, Any]) -> None:
    """Load rows and write them."""
    chosen = output.Output.pop(values)
    arguments = pop_arguments(loader, values)
    strict = values.pop("strict")
    if chosen.columns is not None:
        check_columns(loader, chosen)
    with open_explorer(values) as explorer:
        rows = loader(**arguments, explorer=explorer, **({"strict": True} if strict else {}))
        requests = explorer.requests
    chosen.write(rows, {"loader": loader.__name__, "requests": requests})


def check_columns(loader: Loader, chosen: output.Output) -> None:
    """Refuse unknown columns before any request, if the columns of the loader are documented."""
    from beaconframes.exports.loader_calls import find_endpoint

    endpoint = find_endpoint(loader)
    if endpoint is not None and not endpoint.table.keeps_every_field:
        chosen.select(endpoint.table.empty())


def load_image(loader: Loader, values: dict[str, Any]) -> None:
    """Load an image and write it to a file."""
    from beaconframes.wall import save

    out, overwrite, as_json = (values.pop(name) for name in ("out", "overwrite", "as_json"))
    if out is None or out.suffix.lower() != ".png":
        raise UsageError("an image needs --out with a PNG file", hint="Such as --out chart.png")
    output.check_target(out, overwrite=overwrite)
    arguments = pop_arguments(loader, values)
    with open_explorer(values) as explorer:
        image = loader(**arguments, explorer=explorer)
    save(image, out)
    if as_json:
        facts = {"file": str(out), "bytes": out.stat().st_size}
        complete = output.completeness_facts(current_state())
        print_json({**complete, "loader": loader.__name__, **facts})
    else:
        click.echo(f"{click.format_filename(out)}: {image.width} x {image.height}")


load = LoaderGroup(
    name="load",
    build=build_command,
    help="""Load rows and print them, or write them to a file.

    LOADER is the name of a loader without load_: load income-history is load_income_history. A
    time is an epoch, slot or day (negative numbers count back from the latest), a date, a month
    (2026-10) or a time in UTC, or an age such as 30d or 12h.
    """,
)
