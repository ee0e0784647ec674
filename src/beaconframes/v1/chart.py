"""The charts of the service, as images."""

from __future__ import annotations

from difflib import get_close_matches
from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from beaconframes.client import Explorer
from beaconframes.client.connection import get_explorer
from beaconframes.endpoint import Envelope, Request
from beaconframes.errors import ProtocolError, UsageError
from beaconframes.text import shorten

if TYPE_CHECKING:
    from PIL.Image import Image
else:
    # Importing pillow takes time: it is imported only when an image is loaded.
    Image = Any

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
"""Names of the charts of the service."""

MAX_PIXELS = 50_000_000


def load_chart(name: str, *, explorer: Explorer | None = None) -> Image:
    """Load a chart of the service as an image, without its data.

    `beaconframes.plot` draws similar charts from frames.

    Parameters
    ----------
    name
        Name of the chart, such as ``"validators"`` or ``"participation_rate"``.
    explorer
        The explorer to load from. Default: that of ``bf.connect`` or ``bf.local``.

    Returns
    -------
    PIL.Image.Image
        The image. Notebooks show it; ``image.save("validators.png")`` writes it to a file.

    Notes
    -----
    ``GET /api/v1/chart/{chart}``. Never final. A local explorer draws a few of the charts.
    """
    if str(name) not in CHARTS:
        near = get_close_matches(str(name), CHARTS, n=1)
        raise UsageError(
            f"{shorten(name)} is not a chart of the service",
            hint=f"Did you mean {near[0]!r}?" if near else f"Charts: {', '.join(CHARTS)}",
        )
    request = Request(
        "GET",
        CHART_PATH.replace("{chart}", quote(name)),
        endpoint=f"GET {CHART_PATH}",
        envelope=Envelope.PNG,
    )
    source = get_explorer(explorer)
    return decode_image(source.fetch(request))


def decode_image(body: bytes) -> Image:
    """Return the image in the PNG file *body*; raise ProtocolError for invalid data."""
    from PIL import Image

    # Every PNG has its width and height here: check them before decompression.
    width, height = int.from_bytes(body[16:20]), int.from_bytes(body[20:24])
    endpoint = f"GET {CHART_PATH}"
    if width * height > MAX_PIXELS:
        raise ProtocolError(
            f"the image has {width} x {height} pixels, more than {MAX_PIXELS:,}", endpoint=endpoint
        )
    try:
        picture = Image.open(BytesIO(body), formats=["PNG"])
        picture.load()
    except (OSError, SyntaxError, ValueError) as error:
        raise ProtocolError(f"the image is damaged ({error})", endpoint=endpoint) from None
    return picture
