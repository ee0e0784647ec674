"""The service's own charts, as pictures."""

from __future__ import annotations

from difflib import get_close_matches
from io import BytesIO
from typing import TYPE_CHECKING
from urllib.parse import quote

from beaconframes.client.connected import current
from beaconframes.endpoint import Envelope, Request
from beaconframes.endpoint.identifiers import cut
from beaconframes.errors import ProtocolError, UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

    from beaconframes.client import Explorer

CHART_PATH = "/api/v1/chart/{chart}"
CHARTS = (
    "blocks",
    "validators",
    "staked_ether",
    "average_balance",
    "network_liveness",
    "participation_rate",
    "stake_effectiveness",
    "balance_distribution",
    "effective_balance_distribution",
    "performance_distribution_365d",
    "deposits",
    "withdrawals",
    "graffiti_wordcloud",
    "pools_distribution",
    "historic_pool_performance",
    "avg_gas_used_chart_data",
    "execution_burned_fees",
    "block_gas_used",
    "block_count_chart_data",
    "block_time_avg_chart_data",
    "avg_gas_limit_chart_data",
    "avg_block_util_chart_data",
    "tx_count_chart_data",
)
"""The charts that the service is known to draw."""

MOST_PIXELS = 50_000_000


def load_chart(name: str, *, explorer: Explorer | None = None) -> Image:
    """Load one of the service's charts, as a picture: there is no data in it.

    What the pictures show can be drawn from frames instead: see `beaconframes.plot`.

    Parameters
    ----------
    name
        Name of the chart, such as ``"validators"`` or ``"participation_rate"``.
    explorer
        The explorer to ask; left out, the one of ``bf.connect`` or ``bf.local``.

    Returns
    -------
    PIL.Image.Image
        The picture. A notebook shows it; ``picture.save("validators.png")`` keeps it.

    Notes
    -----
    ``GET /api/v1/chart/{chart}``. Never final. A local explorer draws a few of them, plainly.
    """
    if name not in CHARTS:
        near = get_close_matches(str(name), CHARTS, n=1)
        raise UsageError(
            f"{cut(name)} is no chart of the service",
            hint=f"Did you mean {near[0]!r}?" if near else f"It has: {', '.join(CHARTS)}",
        )
    request = Request(
        "GET",
        CHART_PATH.replace("{chart}", quote(name)),
        endpoint=f"GET {CHART_PATH}",
        envelope=Envelope.PNG,
    )
    asked = explorer if explorer is not None else current()
    return picture_of(asked.fetch(request))


def picture_of(body: bytes) -> Image:
    """Return the picture in the PNG file *body*; raise ProtocolError for one that is none."""
    from PIL import Image

    # Width and height stand at the same place of every PNG: looked at before any is unpacked.
    width, height = int.from_bytes(body[16:20]), int.from_bytes(body[20:24])
    endpoint = f"GET {CHART_PATH}"
    if width * height > MOST_PIXELS:
        raise ProtocolError(f"a picture of {width} x {height} pixels", endpoint=endpoint)
    try:
        picture = Image.open(BytesIO(body), formats=["PNG"])
        picture.load()
    except (OSError, SyntaxError, ValueError) as error:
        raise ProtocolError(f"the picture is damaged ({error})", endpoint=endpoint) from None
    return picture
