"""The chain head and the exchange rates of the service."""

from __future__ import annotations

from beaconframes.client import Values, loader
from beaconframes.endpoint import Endpoint, Envelope, Shape
from beaconframes.schema import Count, Epoch, Flag, Json, Number, Slot, SlotTime, Table, Text


class LatestState(Table):
    """The chain head and the exchange rates of the service. One row per response."""

    current_slot = Slot("Latest slot that the service has processed.", key=True, wire="currentSlot")
    time = SlotTime("Start of the current slot, UTC.", of="current_slot")
    last_proposed_slot = Slot("Latest slot with a block.", wire="lastProposedSlot")
    current_epoch = Epoch("Latest epoch that the service has processed.", wire="currentEpoch")
    current_finalized_epoch = Epoch("Latest finalized epoch.", wire="currentFinalizedEpoch")
    finality_delay = Count("Epochs between head and finality.", wire="finalityDelay")
    syncing = Flag("Whether the service is behind the chain head.")
    ticker_currency = Text("Currency of the ticker.", wire="rates.tickerCurrency", optional=True)
    ticker_currency_symbol = Text(
        "Symbol of that currency.", wire="rates.tickerCurrencySymbol", optional=True
    )
    selected_currency = Text(
        "Currency selected in the session.", wire="rates.selectedCurrency", optional=True
    )
    selected_currency_symbol = Text(
        "Symbol of that currency.", wire="rates.selectedCurrencySymbol", optional=True
    )
    main_currency = Text("Main currency of the chain.", wire="rates.mainCurrency", optional=True)
    main_currency_symbol = Text(
        "Symbol of that currency.", wire="rates.mainCurrencySymbol", optional=True
    )
    main_currency_price = Number(
        "Price of the main currency in the selected currency.",
        wire="rates.mainCurrencyPrice",
        optional=True,
    )
    main_currency_price_formatted = Text(
        "That price as text of the website; may contain markup.",
        wire="rates.mainCurrencyPriceFormatted",
        optional=True,
    )
    main_currency_price_k_formatted = Text(
        "That price as text, in thousands.", wire="rates.mainCurrencyKFormatted", optional=True
    )
    main_currency_ticker_price = Number(
        "Price of the main currency in the ticker currency.",
        wire="rates.mainCurrencyTickerPrice",
        optional=True,
    )
    main_currency_ticker_price_formatted = Text(
        "That price as text of the website; may contain markup.",
        wire="rates.mainCurrencyTickerPriceFormatted",
        optional=True,
    )
    main_currency_ticker_price_k_formatted = Text(
        "That price as text, in thousands.",
        wire="rates.mainCurrencyTickerPriceKFormatted",
        optional=True,
    )
    el_currency = Text("Currency of the execution layer.", wire="rates.elCurrency", optional=True)
    el_currency_symbol = Text(
        "Symbol of that currency.", wire="rates.elCurrencySymbol", optional=True
    )
    el_currency_price = Number(
        "Price in the selected currency.", wire="rates.elCurrencyPrice", optional=True
    )
    el_currency_price_formatted = Text(
        "That price as text of the website; may contain markup.",
        wire="rates.elCurrencyPriceFormatted",
        optional=True,
    )
    el_currency_price_k_formatted = Text(
        "That price as text, in thousands.", wire="rates.elCurrencyKFormatted", optional=True
    )
    cl_currency = Text("Currency of the consensus layer.", wire="rates.clCurrency", optional=True)
    cl_currency_symbol = Text(
        "Symbol of that currency.", wire="rates.clCurrencySymbol", optional=True
    )
    cl_currency_price = Number(
        "Price in the selected currency.", wire="rates.clCurrencyPrice", optional=True
    )
    cl_currency_price_formatted = Text(
        "That price as text of the website; may contain markup.",
        wire="rates.clCurrencyPriceFormatted",
        optional=True,
    )
    cl_currency_price_k_formatted = Text(
        "That price as text, in thousands.", wire="rates.clCurrencyKFormatted", optional=True
    )
    main_currency_ticker_prices = Json(
        "Prices in all currencies of the website, as JSON.",
        wire="rates.mainCurrencyTickerPrices",
        optional=True,
    )


LATEST_STATE = Endpoint(
    "latest_state",
    route="GET /api/v1/latestState",
    table=LatestState,
    envelope=Envelope.BARE,
    shape=Shape.OBJECT,
)


@loader(LATEST_STATE)
def load_latest_state() -> Values:
    """Load the chain head and the exchange rates of the service, one row.

    Returns
    -------
    polars.DataFrame
        One row. The fields of ``rates`` are columns of their own. Prices are floats, as the service
        sends them.

    Notes
    -----
    ``GET /api/v1/latestState``. Never final.
    """
    return {}
