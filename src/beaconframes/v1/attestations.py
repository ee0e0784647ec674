"""Attestation duties, and the slots in which they were included."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from beaconframes.active_periods import Lifetime
from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import (
    NATURAL,
    UNRESOLVED,
    Batch,
    ColumnParameter,
    Endpoint,
    ExpectedRows,
    Finality,
    Identifiers,
    Parameter,
    Role,
)
from beaconframes.endpoint.parameter import permit_any_text
from beaconframes.errors import UsageError
from beaconframes.schema import (
    WEEK_OF_EPOCH,
    Count,
    Epoch,
    EpochTime,
    NumberCode,
    Slot,
    SlotInEpoch,
    Table,
)
from beaconframes.time_range import Moment, Span

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint import ChainHead, Fields, JsonSchema
    from beaconframes.endpoint.chain_head import End
    from beaconframes.schema import Column


PENDING = "pending"
INCLUSION_EPOCHS = 1
"""An attestation can be included until the end of this many epochs after its own."""


class DutyStatus(NumberCode):
    """The outcome of a duty; the service sends the same code for missed and pending duties."""

    def encode(self) -> pl.Expr:
        """Return the codes."""
        codes = {PENDING: "0", **{word: code for code, word in self.words.items()}}
        return pl.col(self.name).replace(codes).cast(pl.Int64)


class Attestations(Table):
    """Attestation duties. One row per validator per epoch."""

    validator_index = Count("Validator.", key=True, wire=("validatorindex", "validator_index"))
    epoch = Epoch("Epoch of the duty.", key=True)
    time = EpochTime("Start of the epoch, UTC.")
    attester_slot = Slot("Attested slot.", wire="attesterslot")
    inclusion_slot = Slot(
        "Slot of the block that included the attestation; null until one does.",
        wire="inclusionslot",
        none=0,
    )
    status = DutyStatus(
        "included or missed; pending while a block can still include the attestation.",
        words={"0": "missed", "1": "included"},
    )
    committee_index = Count(
        "Committee; always 0 in the service. Null with slim=True.",
        wire="committeeindex",
        optional=True,
    )

    calendar_fields = WEEK_OF_EPOCH

    invariants = (SlotInEpoch("attester_slot"),)


@dataclass(frozen=True)
class Slim(Parameter):
    """Whether the response leaves out the fields that can be derived."""

    role = Role.FILTER
    args = ("slim",)
    field_schemas: ClassVar = permit_any_text({"slim": {"type": "boolean", "default": False}})

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return ``true``, or nothing."""
        slim = values["slim"]
        if not isinstance(slim, bool):
            raise UsageError(f"slim={slim!r} is not a boolean", hint="Use True or False")
        return [Batch({"slim": "true"} if slim else {})]

    def omitted_fields(self, fields: Fields) -> tuple[str, ...]:
        """Return the fields that are left out for ``true``, and for no other value."""
        if fields.get("slim") != "true":
            return ()
        return ("week", "week_start", "week_end", "committeeindex")


SERVED_EPOCHS = 100
"""Epochs for which the public service has attestation duties, and the most in one request."""


@dataclass(frozen=True)
class RecentEpochs(ColumnParameter):
    """A range of epochs, at most ``length`` of them in one request.

    A service has the last ``length`` epochs and refuses older ones. A dataset has all epochs.
    """

    column: Column
    _: KW_ONLY
    length: int = SERVED_EPOCHS

    role = Role.RANGE
    args = ("since", "until")
    fields: ClassVar = ("startEpoch", "endEpoch")
    window_moves = True
    has_open_rows = True

    @property
    def window(self) -> int | None:
        """Return how many epochs one request covers."""
        return self.length

    def served_units(self, head: End, chain_head: ChainHead) -> range:
        """Return the last ``length`` epochs, or all of a service that drops none."""
        latest = head.latest("epoch", chain_head.chain)
        return range(self.oldest(latest) if chain_head.drops_old_units() else 0, latest + 1)

    def oldest(self, latest: int) -> int:
        """Return the first of the ``length`` epochs up to *latest*."""
        return max(latest - self.length + 1, 0)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the fewest ranges; raise UsageError if the first starts before those served."""
        span = self.span(values, chain_head)
        served = self.served_units(chain_head.head(), chain_head)
        if span.first < served.start:
            is_end = span.last < served.start
            bound, epoch = ("until", span.last) if is_end else ("since", span.first)
            other = "" if is_end else ", or omit since to load all of them"
            raise UsageError(
                f"epoch {epoch} is no longer available: the service has only the last "
                f"{self.length} epochs, {served.start} to {served.stop - 1}",
                hint=f"Give {bound}={-self.length} or later{other}",
            )
        batches = []
        for first in range(span.first, span.last + 1, self.length):
            last = min(first + self.length - 1, span.last)
            wanted = ExpectedRows({self.column.name: range(first, last + 1)})
            batches.append(Batch({"startEpoch": str(first), "endEpoch": str(last)}, (wanted,)))
        return batches

    def requested_units(
        self, values: Mapping[str, Any], chain_head: ChainHead
    ) -> list[ExpectedRows]:
        """Return the range, even if the service no longer has it: it may be in the store."""
        span = self.span(values, chain_head)
        return [ExpectedRows({self.column.name: range(span.first, span.last + 1)})]

    def span(self, values: Mapping[str, Any], chain_head: ChainHead) -> Span:
        """Return the requested range. Default of *since*: the last ``length`` served epochs."""
        since = values["since"]
        span = chain_head.span(since, values["until"], "epoch", length=self.length)
        if since is not None:
            return span
        oldest = self.served_units(chain_head.head(), chain_head).start
        return Span(max(span.first, oldest), span.last) if oldest <= span.last else span

    @property
    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        return dict.fromkeys(self.fields, NATURAL)

    def mark_open_rows(self, rows: pl.DataFrame, chain_head: ChainHead) -> pl.DataFrame:
        """Return *rows* with the status pending where a block can still include the duty."""
        latest, final = chain_head.latest("epoch"), chain_head.latest("epoch", finalized=True)
        # An index ends with a final epoch: its duties have their outcome.
        first_open = max(latest - INCLUSION_EPOCHS, final + 1)
        is_open = pl.col(self.column.name) >= first_open
        status = pl.when(is_open & (pl.col("status") == "missed")).then(pl.lit(PENDING))
        return rows.with_columns(status.otherwise("status").alias("status"))


RECENT_EPOCHS = RecentEpochs(Attestations.epoch)

ATTESTATIONS = Endpoint(
    "attestations",
    route="GET /api/v1/validator/{validators}/attestations",
    table=Attestations,
    parameters=(Identifiers("validators", Attestations.validator_index), Slim()),
    pagination=RECENT_EPOCHS,
    finality=Finality.AT_FINALITY,
    is_contiguous=True,
    absent=UNRESOLVED,
    lifetime=Lifetime.DUTIES,
)


@loader(ATTESTATIONS, missing="missing rows")
def load_attestations(
    validators: Subjects,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    slim: bool = False,
) -> Values:
    """Load attestation duties, one row per validator per epoch.

    100 validators and 100 epochs per request. The public service has the last 100 epochs only: an
    earlier *since* raises an error. An epoch that leaves the last 100 during the load is left out,
    and a `MissingRows` warning names it. `beaconframes.record` stores duties before they are
    dropped. A dataset that is served locally has no such limit.

    Parameters
    ----------
    validators
        Indices or public keys: one, or a list, range or Series of them, mixed, of any length.
    since, until
        First and last epoch, inclusive: an epoch, a negative number counting back from the latest
        (``since=-10`` is the last 10), a date, a datetime or ``"6h"``. Default: the last 100
        processed epochs, which are all that the public service has.
        A date is the whole UTC day: ``until="2026-10-01"`` includes all of October 1.
        ``"2026-10"`` is the whole month.
        A Timestamp is one instant: ``until=pd.Timestamp("2026-10-01")`` ends at its midnight.
    slim
        Whether to leave out ``committee_index``, which halves the bytes; the column is then null.

    Returns
    -------
    polars.DataFrame
        Sorted by ``validator_index``, ``epoch``. ``status`` is ``included``,
        ``missed``, or ``pending`` for duties of the latest two epochs that can still be included:
        none in an index, whose last epoch is final.
        A validator has no rows for epochs in which it was not active.

    Notes
    -----
    ``GET /api/v1/validator/{indexOrPubkey}/attestations``. Final once the epoch is finalized.
    """
    return {"validators": validators, "since": since, "until": until, "slim": slim}
