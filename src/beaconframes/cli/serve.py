"""``beaconframes serve``: the local explorer."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Annotated, Any, cast

import click

from beaconframes.answers.dataset_source import open_dataset
from beaconframes.answers.memory_cache import CACHE_BYTES
from beaconframes.cli.from_signature import Kind, command, list_arguments
from beaconframes.cli.messages import replace_arguments
from beaconframes.cli.rendering import format_json
from beaconframes.cli.runner import current_state
from beaconframes.memory import share_heap
from beaconframes.server import Server
from beaconframes.simulator import open_sample
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from beaconframes.server.access import Tier

ACCESS_LOG = "beaconframes.server.access"
WIRES = {
    "spec": "Wire: spec, the names of the specification; existing clients need --wire public",
    "public": "Wire: public, the names of the public service",
}
TEXTS = {
    "limits": "Limits of each key: second=5,hour=1000,month=30000, or only of a tier: "
    "free:second=1,month=1000 (nokey, free, premium), or service: those of the public service, "
    "which also drops attestation duties after 100 epochs.",
    "faults": "Simulate a fault: 503@10%, hang@1%, truncate@1% or html@5% of the requests, or "
    "latency=80ms for every answer.",
    "origins": "Permit web pages of this origin to read answers; repeat it for each origin.",
    "keys": "A key to accept and its tier, free or premium; repeat it for each key.",
    "require_key": "Refuse requests without a key.",
}
"""The help of arguments that are lists or dicts in Python."""


def parse_tiers(_option: str, texts: Iterable[str]) -> dict[str, Tier]:
    """Return the tier of each key, parsed from ``KEY:TIER``."""
    tiers: dict[str, Tier] = {}
    for text in texts:
        key, _, tier = text.rpartition(":")
        if not key or tier not in ("free", "premium"):
            raise click.UsageError("--key: write a key as KEY:free or KEY:premium")
        tiers[key] = cast("Tier", tier)
    return tiers


KINDS = {
    "rate": Kind(type=click.IntRange(min=1)),
    "start": Kind("EPOCH", type=click.IntRange(min=0)),
    "speed": Kind(type=click.FloatRange(min=0, min_open=True)),
    "limits": Kind("LIMITS", repeated=True),
    "faults": Kind("FAULT", repeated=True, option="--fault"),
    "origins": Kind("URL", repeated=True, option="--origin"),
    "keys": Kind("KEY:TIER", parse_tiers, repeated=True, option="--key"),
}
NOT_OPTIONS = ("self", "dataset", "port", "cache_bytes")


@command(arguments=list_arguments(Server.__init__, NOT_OPTIONS, texts=TEXTS, kinds=KINDS))
def serve(
    arguments: dict[str, Any],
    dataset: Annotated[str | None, click.Path(exists=True, file_okay=False)] = None,
    *,
    port: Annotated[int, click.IntRange(0, 65535)] = 8000,
    cache_bytes: Annotated[str, "--cache", "SIZE"] = f"{CACHE_BYTES // 10**6}MB",
    access_log: bool = False,
) -> None:
    """Serve the API of the explorer from a dataset.

    Without DATASET, the simulated sample is served; with --live, a chain from two days ago to two
    days ahead. A DATASET for --live is one of simulate --ends with a future time.

    With keys, requests need one of them. V1 of --wire public also answers other requests, within
    the limits of no key, unless --require-key is given. The list of processes shows the options,
    so put a secret key into the environment variable BEACONFRAMES_SERVE_KEY.

    Parameters
    ----------
    port
        Port on loopback; 0 chooses a free port.
    cache_bytes
        Largest size of the rows in memory.
    access_log
        Log every request on standard error.
    """
    if key := os.environ.get("BEACONFRAMES_SERVE_KEY"):
        arguments["keys"] = arguments.get("keys", {}) | {key: "premium"}
    live, wire = arguments["live"], arguments["wire"]
    share_heap()
    show_log(with_requests=access_log)
    served = open_sample(live=live) if dataset is None else open_dataset(dataset)
    with Server(served, port=port, cache_bytes=cache_bytes, **arguments) as server:
        chain = visible(server.service.chain.name)
        path = click.format_filename(served.path)
        facts = {"url": server.url, "chain": chain, "dataset": path, "wire": wire, "live": live}
        facts |= {"v1": f"{server.url}/api/v1", "v2": f"{server.url}/api/v2/ethereum"}
        if current_state().as_json:
            click.echo(format_json(facts))
        else:
            click.echo(f"Serving {path} ({chain}) at {server.url} until Ctrl-C")
            click.echo(f"Load from it with --url {server.url}, or with bf.connect({server.url!r})")
            click.echo(f"Base URLs for other clients: V1 {facts['v1']}, V2 {facts['v2']}")
            click.echo(WIRES[wire])
            click.echo(replace_arguments(server.service.describe_head(), current_state().options))
        server.wait()


def show_log(*, with_requests: bool) -> None:
    """Write the reasons of refused requests to standard error, or a line for every request."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log = logging.getLogger("beaconframes.server")
    log.handlers = [handler]
    log.setLevel(logging.INFO)
    log.propagate = False
    logging.getLogger(ACCESS_LOG).setLevel(logging.NOTSET if with_requests else logging.WARNING)
