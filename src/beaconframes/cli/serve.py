"""``beaconframes serve``: the local explorer."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, cast

import click

from beaconframes.cli.common_options import JSON_HELP
from beaconframes.text import visible

if TYPE_CHECKING:
    from beaconframes.server.v2.tiers import Tier


@click.command()
@click.argument("dataset", required=False, type=click.Path(exists=True, file_okay=False))
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port on loopback; 0 chooses a free port.",
)
@click.option(
    "--wire",
    type=click.Choice(["spec", "public"]),
    default="spec",
    show_default=True,
    help="Names, shapes and errors of the specification, or of the public service.",
)
@click.option("--rate", type=click.IntRange(min=1), help="Largest request rate per second.")
@click.option(
    "--key",
    "tiers",
    multiple=True,
    metavar="KEY:TIER",
    callback=lambda _context, _option, texts: parse_tiers(texts),
    help="A key to accept and its tier, free or premium; repeat it for each key.",
)
@click.option("--json", "as_json", is_flag=True, help=JSON_HELP)
def serve(
    dataset: str | None,
    port: int,
    wire: Literal["spec", "public"],
    rate: int | None,
    tiers: dict[str, Tier],
    as_json: bool,
) -> None:
    """Serve the API of the explorer from a dataset.

    Without DATASET, the simulated sample is served.

    With keys, every request needs one of them. The list of processes shows the options, so put a
    secret key into the environment variable BEACONFRAMES_SERVE_KEY.
    """
    from beaconframes.calendar import HOODI, MAINNET
    from beaconframes.cli.rendering import format_json
    from beaconframes.server import Server, open_dataset
    from beaconframes.simulator import open_sample

    served = open_sample() if dataset is None else open_dataset(dataset)
    if key := os.environ.get("BEACONFRAMES_SERVE_KEY"):
        tiers = {**tiers, key: "premium"}
    with Server(served, port=port, keys=tiers, wire=wire, rate=rate) as server:
        chain = visible(server.service.chain.name)
        path = click.format_filename(served.path)
        if as_json:
            click.echo(format_json({"url": server.url, "chain": chain, "dataset": path}))
        else:
            click.echo(f"Serving {path} ({chain}) at {server.url} until Ctrl-C")
            if server.service.chain not in (MAINNET, HOODI):
                click.echo(
                    f"Its times differ from those of mainnet: load with --dataset {path}, not --url"
                )
        server.wait()


def parse_tiers(texts: tuple[str, ...]) -> dict[str, Tier]:
    """Return the tier of each key, parsed from ``KEY:TIER``."""
    tiers: dict[str, Tier] = {}
    for text in texts:
        key, _, tier = text.rpartition(":")
        if not key or tier not in ("free", "premium"):
            raise click.BadParameter("write a key as KEY:free or KEY:premium")
        tiers[key] = cast("Tier", tier)
    return tiers
