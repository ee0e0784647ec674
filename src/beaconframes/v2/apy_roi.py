"""Return on investment and yearly yield of a set of validators over a window."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from beaconframes.client import SubjectsOrSet, Values, loader
from beaconframes.endpoint import (
    ChainName,
    Endpoint,
    Envelope,
    RollingWindow,
    Shape,
    ValidatorSelector,
)
from beaconframes.schema import Epoch, Fraction, Table, Text, UnixTime
from beaconframes.schema.decode_checked import parse_records
from beaconframes.v2._columns import FINALITY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from beaconframes.calendar import Chain
    from beaconframes.schema import EnvelopeContext

LAYERS = ("execution_layer", "consensus_layer", "combined")
RETURNS = ("roi", "apy")


class Percent(Fraction):
    """A fraction: a number in per cent on the wire, or text that is a fraction already."""

    def parse(self, value: Any) -> float | None:
        """Return the value in per cent."""
        number = super().parse(value)
        return float(Decimal(value) * 100) if isinstance(value, str) else number

    def build(self, values: list[Any]) -> pl.Series:
        """Return fractions, computed in decimals so that 2.76 per cent is exactly 0.0276."""
        shares = [None if v is None else float(Decimal(repr(v)) / 100) for v in values]
        return pl.Series(self.name, shares, dtype=self.dtype)

    def encode(self) -> pl.Expr:
        """Return values in per cent."""
        return (pl.col(self.name) * 100).round(12)


class ApyRoi(Table):
    """Yield of a set over a window. One row. Figures are fractions: 0.03 is 3 per cent."""

    window = Text("Requested window.", context="request.range.evaluation_window")
    first_epoch = Epoch("First epoch of the window.", context="range.epoch.start")
    last_epoch = Epoch("Last epoch of the window.", context="range.epoch.end")
    start_time = UnixTime("Start of the window, UTC.", context="range.timestamp.start")
    end_time = UnixTime("Last second of the window, UTC.", context="range.timestamp.end")
    execution_roi = Percent(
        "Execution-layer rewards of the window, as a fraction of the stake.",
        wire="execution_layer.roi.total",
        nullable=True,
    )
    execution_roi_missed = Percent(
        "Missed part of that return; negative.", wire="execution_layer.roi.missed", optional=True
    )
    execution_apy = Percent(
        "That return, extrapolated to a year.", wire="execution_layer.apy.total", nullable=True
    )
    execution_apy_missed = Percent(
        "Missed part of the yearly yield; negative.",
        wire="execution_layer.apy.missed",
        optional=True,
    )
    consensus_roi = Percent(
        "Consensus-layer rewards of the window, as a fraction of the stake.",
        wire="consensus_layer.roi.total",
        nullable=True,
    )
    consensus_roi_missed = Percent(
        "Missed part of that return; negative.", wire="consensus_layer.roi.missed", optional=True
    )
    consensus_apy = Percent(
        "That return, extrapolated to a year.", wire="consensus_layer.apy.total", nullable=True
    )
    consensus_apy_missed = Percent(
        "Missed part of the yearly yield; negative.",
        wire="consensus_layer.apy.missed",
        optional=True,
    )
    roi = Percent("Return of both layers together.", wire="combined.roi.total", nullable=True)
    roi_missed = Percent(
        "Missed part of that return; negative.", wire="combined.roi.missed", optional=True
    )
    apy = Percent("That return, extrapolated to a year.", wire="combined.apy.total", nullable=True)
    apy_missed = Percent(
        "Missed part of the yearly yield; negative.", wire="combined.apy.missed", optional=True
    )
    finality = Text(FINALITY, final_when=("finalized",), optional=True)

    @classmethod
    def decode(
        cls, pages: Iterable[bytes], chain: Chain, contexts: Sequence[EnvelopeContext] = ()
    ) -> pl.DataFrame:
        """Return the rows of all *pages*, in the current or the older form."""
        return super().decode(map(wrap_totals, pages), chain, contexts)

    @classmethod
    def complete(cls, rows: pl.LazyFrame, chain: Chain) -> pl.LazyFrame:
        """Return derived *rows* with the columns of the table, rounded as on the wire."""
        complete = super().complete(rows, chain).collect()
        shares = [column for column in cls.columns if isinstance(column, Percent)]
        rounded = [c.build(complete.select(c.encode()).to_series().to_list()) for c in shares]
        return complete.with_columns(rounded).lazy()


def wrap_totals(page: bytes) -> bytes:
    """Return *page* with an object for each return; the older form has only the total."""
    records = parse_records(ApyRoi.spec, page)
    objects = [record for record in records if isinstance(record, dict)]
    for layer in (record.get(layer) for record in objects for layer in LAYERS):
        for name in RETURNS:
            if isinstance(layer, dict) and isinstance(layer.get(name), str | int | float):
                layer[name] = {"total": layer[name]}
    return msgspec.json.encode(records)


APY_ROI = Endpoint(
    "apy_roi",
    route="POST /api/v2/ethereum/validators/apy-roi",
    table=ApyRoi,
    parameters=(
        ChainName(),
        ValidatorSelector(batched="refused"),
        RollingWindow(ApyRoi.last_epoch),
    ),
    envelope=Envelope.V2,
    shape=Shape.OBJECT,
)


@loader(APY_ROI)
def load_apy_roi(validators: SubjectsOrSet, window: str = "30d") -> Values:
    """Load the return and the yearly yield of a set of validators over a window, one row.

    Figures are fractions: 0.03 is 3 per cent. One request. At most 100 validators (20 on the
    smallest plans) or a dashboard of any size: the yield of a set does not follow from those of its
    parts.

    Parameters
    ----------
    validators
        Indices, public keys, or a set; see `load_validators`.
    window
        ``"24h"``, ``"7d"``, ``"30d"``, ``"90d"`` or ``"all_time"``. It ends with the latest
        finalized epoch.

    Returns
    -------
    polars.DataFrame
        One row, with the epochs of the window. The service writes numbers in per cent, or in an
        older form fractions as text; both become fractions. The older form has no missed returns.

    Notes
    -----
    ``POST /api/v2/ethereum/validators/apy-roi``. Never final: the window moves.
    """
    return {"validators": validators, "window": window}
