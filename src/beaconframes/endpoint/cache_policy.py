"""What of an endpoint's rows can be kept, and how a call asks for what is missing of them.

Rows are complete by subject and unit: a validator and its epochs, or the chain and its slots. So
what one call brought serves every other that asks for some of the same, whatever its batches and
windows. Selectors that only choose among the columns or rows of a unit are not asked for, and
applied afterwards; what cannot be told so is kept in a table of its own, or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from beaconframes.endpoint.cover import Rectangle, Runs, fewest, runs
from beaconframes.endpoint.cursor import Cursor
from beaconframes.endpoint.declaration import Call, Final
from beaconframes.endpoint.members import OnChain, ValidatorsIn
from beaconframes.endpoint.pagination import Pages
from beaconframes.endpoint.parameter import Batch, Wanted
from beaconframes.endpoint.parameters_v1 import Identifiers
from beaconframes.endpoint.pixels import Region, Switch
from beaconframes.endpoint.request import Envelope, Request
from beaconframes.endpoint.windows import RecentEpochs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint.chain_head import ChainHead
    from beaconframes.endpoint.declaration import Endpoint
    from beaconframes.endpoint.parameter import Parameter
    from beaconframes.schema import Column

CHAIN = ("",)
"""The only subject of rows that are of the chain as a whole."""

UNLIMITED = 2**62
DAYS_TO_COME = {Final.AT_FINALITY: 1, Final.WHEN_PUBLISHED: 2}
"""Days after which a row that is final and not there will not come any more."""


@dataclass(frozen=True)
class CacheRange:
    """What a call asks for: whom, by text, and which units. ``keys`` are public keys among them.

    ``every`` says that each subject must have each unit; ``parts`` is as of `Wanted`.
    """

    subjects: tuple[str, ...]
    parts: Runs
    keys: tuple[str, ...] = ()
    every: bool = True
    per_unit: tuple[str, int] | None = None

    @property
    def units(self) -> int:
        """Return how many units there are for each subject."""
        return sum(last - first + 1 for first, last in self.parts)


@dataclass(frozen=True)
class CachePolicy:
    """How the rows of an endpoint are kept.

    ``unit`` is the selector of epochs, slots or days, and ``listed`` says that it takes numbers
    one by one instead of a range. ``subject`` is that of validators, if rows are of some.
    """

    endpoint: Endpoint
    unit: Parameter
    subject: Parameter | None
    sides: tuple[Parameter, ...]
    listed: bool

    @classmethod
    def of(cls, endpoint: Endpoint) -> CachePolicy | None:
        """Return how the rows of *endpoint* are kept; None if they are not."""
        if endpoint.finality is Final.NEVER or endpoint.table.keeps_every_field:
            return None
        unit = next((s for s in endpoint.all_parameters if "since" in s.arguments()), None)
        listed = unit is None
        sides: list[Parameter] = []
        subject: Parameter | None = None
        for parameter in endpoint.all_parameters:
            if parameter is unit or isinstance(parameter, OnChain | Cursor | Pages):
                continue
            numbered = getattr(column_of(parameter), "dtype", None) == pl.Int64
            optional = getattr(parameter, "optional", False)
            if isinstance(parameter, Identifiers | ValidatorsIn) and numbered and not optional:
                subject = parameter
            elif numbered and listed and unit is None:
                unit = parameter
            elif numbered and not listed and subject is None:
                subject = parameter
            else:
                sides.append(parameter)
        if unit is None or (listed and subject is not None):
            return None
        keeping = cls(endpoint, unit, subject, tuple(sides), listed)
        return keeping if keeping.unit_name or keeping.settled else None

    @property
    def unit_column(self) -> str:
        """Return the column of the unit."""
        return named(self.unit)

    @property
    def unit_name(self) -> str:
        """Return what the unit is: epoch, slot, day, period; nothing for numbers of other kinds."""
        return str(getattr(column_of(self.unit), "unit", ""))

    @property
    def subject_column(self) -> str | None:
        """Return the column of the subject, if rows have one."""
        return None if self.subject is None else named(self.subject)

    @cached_property
    def settled(self) -> tuple[pl.Expr, ...]:
        """Return what rows say themselves of being final."""
        columns = self.endpoint.table.schema()
        found = [pl.col(n) for n in ("finalized", "rewards_exported") if n in columns]
        if "finality" in columns:
            found.append(pl.col("finality") == "finalized")
        return tuple(one.fill_null(value=False) for one in found)

    def table(self, values: Mapping[str, Any], chain_head: ChainHead) -> str | None:
        """Return the name of the table that *values* are kept in; None if they are not kept."""
        name = self.endpoint.name
        if self.endpoint.envelope is Envelope.V2:
            name = f"v2_{name}"
        said: dict[str, Any] = {}
        for parameter in self.sides:
            if isinstance(parameter, Region | Switch):
                continue
            batches = parameter.batches(values, chain_head)
            if isinstance(parameter, ValidatorsIn) and batches != [Batch()]:
                # Who is in a set may change, and may depend on the key.
                return None
            if len(batches) != 1:
                return None
            said |= batches[0].fields
        if not said:
            return name
        mark = blake2b(msgspec.json.encode(said, order="sorted"), digest_size=4).hexdigest()
        return f"{name}_{'_'.join(sorted(said)).lower()}_{mark}"

    def want(self, values: Mapping[str, Any], chain_head: ChainHead) -> CacheRange | None:
        """Return what *values* ask for; None where that cannot be told beforehand."""
        wanted: list[Wanted] = []
        subjects: list[str] = list(CHAIN)
        keys: list[str] = []
        if self.subject is not None:
            subjects = []
            for batch in self.subject.batches(values, chain_head):
                if len(batch.wanted) != 1:
                    return None
                wanted += batch.wanted
                for name, found in batch.wanted[0].values.items():
                    (subjects if name == self.subject_column else keys).extend(map(str, found))
                keys += batch.wanted[0].unnamed
            if keys and not isinstance(self.subject, Identifiers):
                return None
        units = self.units(values, chain_head, wanted)
        if units is None or (units and units[0][0] < 0):
            return None
        per_unit = next((one.parts for one in wanted if one.parts is not None), None)
        every = all(one.every for one in wanted)
        return CacheRange(tuple(dict.fromkeys(subjects)), units, tuple(keys), every, per_unit)

    def units(
        self, values: Mapping[str, Any], chain_head: ChainHead, wanted: list[Wanted]
    ) -> Runs | None:
        """Return the units that *values* ask for, and add to *wanted* what is said of them."""
        if isinstance(self.unit, RecentEpochs):
            # What is kept may be older than what is still served.
            since, until = values["since"], values["until"]
            span = chain_head.span(since, until, "epoch", length=self.unit.length)
            wanted.append(Wanted({self.unit_column: range(span.first, span.last + 1)}))
            return ((span.first, span.last),)
        numbers: list[int] = []
        spans: list[tuple[int, int]] = []
        for batch in self.unit.batches(values, chain_head):
            if len(batch.wanted) != 1:
                return None
            wanted += batch.wanted
            for name, found in batch.wanted[0].values.items():
                if name != self.unit_column and found:
                    return None
                if isinstance(found, range):
                    spans += runs(found)
                else:
                    numbers += found
        return runs(numbers) if numbers else joined(spans)

    def asking(
        self, missing: Mapping[str, Runs], values: Mapping[str, Any], chain_head: ChainHead
    ) -> list[dict[str, Any]]:
        """Return the arguments that ask for what is *missing*, and take the fewest requests."""
        if self.listed:
            (arg,) = self.unit.arguments()
            parts = missing.get(CHAIN[0], ())
            numbers = [n for first, last in parts for n in range(first, last + 1)]
            return [{**values, **self.neutral, arg: numbers}] if numbers else []
        rectangles = fewest(missing, subjects=self.at_once(chain_head), units=self.reach)
        return [self.asked(one, values) for one in rectangles]

    def asked(self, one: Rectangle, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that ask for one rectangle."""
        whom: dict[str, Any] = {}
        if self.subject is not None:
            whom = {self.subject.arguments()[0]: [int(subject) for subject in one.subjects]}
        return {**values, **self.neutral, **whom, "since": one.first, "until": one.last}

    @property
    def neutral(self) -> dict[str, Any]:
        """Return the arguments with which nothing is left out of a unit."""
        none: dict[str, Any] = {}
        for parameter in self.sides:
            if isinstance(parameter, Region | Switch):
                (arg,) = parameter.arguments()
                none[arg] = None if isinstance(parameter, Region) else False
        return none

    def narrow(
        self, rows: pl.LazyFrame, values: Mapping[str, Any], chain_head: ChainHead
    ) -> pl.LazyFrame:
        """Return those of *rows* that *values* choose among what was asked for instead."""
        for parameter in self.sides:
            if isinstance(parameter, Region):
                (batch,) = parameter.batches(values, chain_head)
                rows = parameter.apply(rows, batch.fields, None)  # type: ignore[arg-type]
        return rows

    def at_once(self, chain_head: ChainHead) -> int:
        """Return how many subjects one request takes."""
        if isinstance(self.subject, ValidatorsIn):
            return chain_head.at_once
        return int(getattr(self.subject, "at_most", 1))

    @property
    def reach(self) -> int:
        """Return how many units in a row one request takes."""
        reach = self.unit.reach
        for name in ("length", "at_most"):
            reach = reach or getattr(self.unit, name, None)
        return reach or UNLIMITED

    def final_until(self, chain_head: ChainHead, finalized: int) -> int:
        """Return the last unit that is final when *finalized* is the last such epoch."""
        chain = chain_head.chain
        if finalized < 0:
            return -1
        if self.unit_name == "slot":
            return (finalized + 1) * chain.slots_per_epoch - 1
        if self.unit_name == "day":
            return chain.at("day", chain.time_of("epoch", finalized + 1)) - 1
        if self.unit_name == "period":
            # A committee is known, and fixed, one period before it serves.
            return finalized // chain.epochs_per_sync_period + 1
        return finalized if self.unit_name == "epoch" else UNLIMITED

    def absent_until(self, chain_head: ChainHead, finalized: int) -> int:
        """Return the last unit for which it is final that there is no row, if there is none."""
        if not self.unit_name:
            return -1
        days = DAYS_TO_COME[self.endpoint.finality]
        return self.final_until(chain_head, finalized - days * chain_head.chain.epochs_per_day)

    def as_one(self, want: CacheRange) -> Call:
        """Return *want* as one call, which is never sent: what came is held against it."""
        said = {id(self.unit): Wanted(
            {self.unit_column: as_numbers(want.parts)}, want.every, parts=want.per_unit
        )}  # fmt: skip
        if self.subject is not None:
            assert self.subject_column is not None
            whom = [int(subject) for subject in want.subjects]
            said[id(self.subject)] = Wanted({self.subject_column: whom}, want.every)
        batches = tuple(
            Batch({}, (said[id(s)],) if id(s) in said else ()) for s in self.endpoint.all_parameters
        )
        wanted = tuple(w for batch in batches for w in batch.wanted)
        return Call(Request("", "", endpoint=self.endpoint.route), wanted, {}, batches)

    def without(self, want: CacheRange, subjects: tuple[str, ...]) -> CacheRange:
        """Return *want* for other subjects."""
        return replace(want, subjects=subjects)


def column_of(parameter: Parameter) -> Column | None:
    """Return the column that a selector chooses by, if there is one."""
    found: Column | None = getattr(parameter, "column", None)
    return found


def named(parameter: Parameter) -> str:
    """Return the name of the column that a selector chooses by."""
    column = column_of(parameter)
    assert column is not None
    return column.name


def joined(spans: list[tuple[int, int]]) -> Runs:
    """Return *spans* in order, those that touch as one."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)


def as_numbers(parts: Runs) -> range | list[int]:
    """Return the numbers of *parts*; one run stays a range."""
    if len(parts) == 1:
        return range(parts[0][0], parts[0][1] + 1)
    return [number for first, last in parts for number in range(first, last + 1)]
