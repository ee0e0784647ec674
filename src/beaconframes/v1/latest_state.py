"""The latest state of the chain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack, overload

from beaconframes.client import Eager, Explorer, Frame, Lazy, Pandas, load
from beaconframes.endpoint import Endpoint, Envelope, Shape
from beaconframes.schema import Count, Epoch, Flag, Json, Number, Slot, SlotTime, Table, Text

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class LatestState(Table):
    """The head of the chain and the service's exchange rates. One row per reading."""

    current_slot = Slot("Latest slot that the service has processed.", key=True, wire="currentSlot")
    time = SlotTime("Start of that slot, UTC.", of="current_slot")
    last_proposed_slot = Slot("Latest slot with a block.", wire="lastProposedSlot")
    current_epoch = Epoch("Latest epoch that the service has processed.", wire="currentEpoch")
    current_finalized_epoch = Epoch("Latest finalized epoch.", wire="currentFinalizedEpoch")
    finality_delay = Count("Epochs between head and finality.", wire="finalityDelay")
    syncing = Flag("Whether the service is behind the chain.")
    ticker_currency = Text("Currency of the ticker.", wire="rates.tickerCurrency")
    ticker_currency_symbol = Text("Its symbol.", wire="rates.tickerCurrencySymbol")
    selected_currency = Text("Currency chosen by the visitor.", wire="rates.selectedCurrency")
    selected_currency_symbol = Text("Its symbol.", wire="rates.selectedCurrencySymbol")
    main_currency = Text("Main currency of the chain.", wire="rates.mainCurrency")
    main_currency_symbol = Text("Its symbol.", wire="rates.mainCurrencySymbol")
    main_currency_price = Number(
        "Price of the main currency in the selected one.", wire="rates.mainCurrencyPrice"
    )
    main_currency_price_formatted = Text(
        "The same as the site writes it; may hold markup.", wire="rates.mainCurrencyPriceFormatted"
    )
    main_currency_price_k_formatted = Text(
        "The same, shortened.", wire="rates.mainCurrencyKFormatted"
    )
    main_currency_ticker_price = Number(
        "Price of the main currency in the ticker currency.", wire="rates.mainCurrencyTickerPrice"
    )
    main_currency_ticker_price_formatted = Text(
        "The same as the site writes it; may hold markup.",
        wire="rates.mainCurrencyTickerPriceFormatted",
    )
    main_currency_ticker_price_k_formatted = Text(
        "The same, shortened.", wire="rates.mainCurrencyTickerPriceKFormatted"
    )
    el_currency = Text("Currency of the execution layer.", wire="rates.elCurrency")
    el_currency_symbol = Text("Its symbol.", wire="rates.elCurrencySymbol")
    el_currency_price = Number("Its price in the selected currency.", wire="rates.elCurrencyPrice")
    el_currency_price_formatted = Text(
        "The same as the site writes it; may hold markup.", wire="rates.elCurrencyPriceFormatted"
    )
    el_currency_price_k_formatted = Text("The same, shortened.", wire="rates.elCurrencyKFormatted")
    cl_currency = Text("Currency of the consensus layer.", wire="rates.clCurrency")
    cl_currency_symbol = Text("Its symbol.", wire="rates.clCurrencySymbol")
    cl_currency_price = Number("Its price in the selected currency.", wire="rates.clCurrencyPrice")
    cl_currency_price_formatted = Text(
        "The same as the site writes it; may hold markup.", wire="rates.clCurrencyPriceFormatted"
    )
    cl_currency_price_k_formatted = Text("The same, shortened.", wire="rates.clCurrencyKFormatted")
    main_currency_ticker_prices = Json(
        "Prices in every currency that the site knows, as JSON.",
        wire="rates.mainCurrencyTickerPrices",
    )


LATEST_STATE = Endpoint(
    "latest_state",
    route="GET /api/v1/latestState",
    table=LatestState,
    envelope=Envelope.BARE,
    shape=Shape.OBJECT,
)


@overload
def load_latest_state(**options: Unpack[Eager]) -> pl.DataFrame: ...
@overload
def load_latest_state(**options: Unpack[Lazy]) -> pl.LazyFrame: ...
@overload
def load_latest_state(**options: Unpack[Pandas]) -> pd.DataFrame: ...
def load_latest_state(
    *,
    explorer: Explorer | None = None,
    strict: bool | None = None,
    lazy: bool = False,
    frame: Literal["polars", "pandas"] | None = None,
    max_requests: int | None = None,
) -> Frame:
    """Load the chain head and the exchange rates of the service, one row.

    Parameters
    ----------
    explorer, strict, lazy, frame, max_requests
        See `load_validators`.

    Returns
    -------
    polars.DataFrame
        One row. The fields of ``rates`` are columns of their own. Prices are floats, as the service
        sends them.

    Notes
    -----
    ``GET /api/v1/latestState``. Never final.
    """
    return load(
        LATEST_STATE,
        {},
        explorer=explorer,
        strict=strict,
        lazy=lazy,
        frame=frame,
        max_requests=max_requests,
    )
