"""Parameters of V2 for subjects, filters and the order of rows.

Each is a field of the JSON body of a request. Slots, blocks and periods are in `positions_v2`,
epochs and times in `ranges_v2`.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from beaconframes.endpoint.identifiers import check_word, iterate_items
from beaconframes.endpoint.parameter import (
    Batch,
    ColumnParameter,
    ExpectedRows,
    JsonSchema,
    NamedParameter,
    Parameter,
    Role,
)
from beaconframes.endpoint.validator_sets import (
    IDENTIFIERS,
    PARTY,
    ValidatorSet,
    build_party,
    check_text,
    describe_sets,
)
from beaconframes.endpoint.validator_sets import validators as build_identifier_set
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint.chain_head import ChainHead
    from beaconframes.schema import Column


@dataclass(frozen=True)
class ChainName(Parameter):
    """The chain; every request states it."""

    role = Role.CONTEXT
    required_fields = ("chain",)
    field_schemas: ClassVar = {
        "chain": {"type": "string", "examples": ["mainnet"], "default": "mainnet"}
    }

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the explorer's chain."""
        return [Batch({"chain": chain_head.chain.name})]


@dataclass(frozen=True)
class ValidatorSelector(ColumnParameter):
    """The set of validators: identifiers, in batches, or another kind of set in one request.

    ``column`` and ``pubkey`` are the columns of the validator, if rows have them. ``batched``
    says how several batches combine: rows side by side, amounts added, or refused because the
    result for a set does not follow from its parts. ``optional``: no set selects all validators.
    """

    column: Column | None = None
    _: KW_ONLY
    pubkey: Column | None = None
    required: bool = True
    optional: bool = False
    batched: Literal["side by side", "added", "refused"] = "side by side"

    filter_storage = "none"
    args = ("validators",)

    @property
    def role(self) -> Role:
        """Return SUBJECT, or FILTER where the set is optional."""
        return Role.FILTER if self.optional else Role.SUBJECT

    @property
    def pubkey_column(self) -> Column | None:
        """Return the column of the public key, if rows have it."""
        return self.pubkey

    def batch_limit(self, chain_head: ChainHead) -> int:
        """Return the most identifiers of one request; the plan of the key sets it."""
        return chain_head.batch_limit

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return batches of identifiers as large as allowed, or one batch for any other set."""
        validators = values["validators"]
        if validators is None:
            if self.optional:
                return [Batch()]
            raise UsageError(
                "validators=None selects no validators",
                hint="Give indices or public keys, or a set such as bf.v2.dashboard(1)",
            )
        if not isinstance(validators, ValidatorSet):
            validators = build_identifier_set(validators)
        if IDENTIFIERS not in validators.fields:
            return [Batch({"validator": validators.fields})]
        items = validators.fields[IDENTIFIERS]
        return self.split(self.batch(items), chain_head.batch_limit) if items else []

    def batch(self, items: list[int | str]) -> Batch:
        """Return the fields that request *items*, and the rows that they select."""
        wanted: tuple[ExpectedRows, ...] = ()
        if self.column is not None and self.pubkey is not None:
            indices = [item for item in items if isinstance(item, int)]
            keys = [item for item in items if isinstance(item, str)]
            wanted = (
                ExpectedRows({self.column.name: indices, self.pubkey.name: keys}, self.required),
            )
        return Batch({"validator": {IDENTIFIERS: items}}, wanted)

    def split(self, batch: Batch, at_most: int) -> list[Batch]:
        """Return the identifiers in parts of *at_most*; raise UsageError if they do not combine."""
        items = (batch.fields.get("validator") or {}).get(IDENTIFIERS, [])
        if len(items) <= at_most:
            return [batch]
        if self.batched == "refused":
            raise UsageError(
                f"{len(items)} validators are more than the {at_most} of one request, and the "
                "result for a set cannot be computed from the results for its parts",
                hint=f"Give at most {at_most} validators, or a set that the service stores, such "
                "as bf.v2.dashboard(1)",
            )
        if self.batched == "added" and len({type(item) for item in items}) > 1:
            raise UsageError(
                f"{len(items)} validators take several requests, and a validator with its index "
                "in one and its public key in another would count twice",
                hint="Give all validators by index, or all by public key",
            )
        return [self.batch(items[n : n + at_most]) for n in range(0, len(items), at_most)]

    @property
    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        return {"validator": describe_sets(nullable=self.optional)}

    @property
    def required_fields(self) -> tuple[str, ...]:
        """Return the field, unless no set selects all validators."""
        return () if self.optional else ("validator",)


@dataclass(frozen=True)
class ValueFilter(NamedParameter):
    """Some of the values of a column: a list in the body; no list selects all of them.

    The values are *words*; without these, they are texts of any kind.
    """

    arg: str
    column: Column
    words: tuple[str, ...] = ()
    role: Literal[Role.FILTER, Role.SUBJECT] = Role.FILTER

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the values, each once; no field for none."""
        words = values[self.arg]
        items = [] if words is None else iterate_items(words)
        chosen = list(dict.fromkeys(self.check(item) for item in items))
        return [Batch({self.arg: chosen}) if chosen else Batch()]

    def check(self, item: Any) -> str:
        """Return one value, or raise UsageError."""
        return check_word(item, self.words, self.arg) if self.words else check_text(item, self.arg)

    @property
    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        text = {"type": "string", "enum": list(self.words)} if self.words else {"type": "string"}
        return {self.arg: {"type": ["array", "null"], "items": text}}


ORDERS = ("asc", "desc")


@dataclass(frozen=True)
class SortOrder(Parameter):
    """The column to sort by, one of *words*, and the direction."""

    words: tuple[str, ...]

    role = Role.ORDER
    args = ("sort_by", "sort_order")

    def choices(self, argument: str) -> tuple[str, ...]:
        """Return the columns to sort by, or the directions."""
        return self.words if argument == "sort_by" else ORDERS

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return column and direction."""
        return [
            Batch({name: check_word(values[name], self.choices(name), name) for name in self.args})
        ]

    @property
    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        by = {"type": "string", "enum": list(self.words), "default": self.words[0]}
        order = {"type": "string", "enum": list(ORDERS), "default": "desc"}
        return {"sort_by": by, "sort_order": order}


@dataclass(frozen=True)
class EntityName(Parameter):
    """Entities by name, one per request."""

    role = Role.SUBJECT
    args = ("entity",)
    required_fields = ("entity",)
    field_schemas: ClassVar = {"entity": {"type": "string"}}

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for each name."""
        names = dict.fromkeys(
            check_text(name, "entity") for name in iterate_items(values["entity"])
        )
        return [Batch({"entity": name}) for name in names]


@dataclass(frozen=True)
class SearchText(Parameter):
    """A text to search for. The service does not document how it searches."""

    role = Role.FILTER
    args = ("search",)
    field_schemas: ClassVar = {"search": {"type": "string"}}

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the text; no field without one."""
        text = values["search"]
        return [Batch() if text is None else Batch({"search": check_text(text, "search")})]


@dataclass(frozen=True)
class OwnerOrOperator(NamedParameter):
    """An owner or an operator, by id or path: selects entities that share validators with it."""

    arg: str

    role = Role.FILTER

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the owner or operator in the form of a set of validators; no field without one."""
        if values[self.arg] is None:
            return [Batch()]
        return [Batch({self.arg: build_party(self.arg, values[self.arg])})]

    @property
    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        return {self.arg: PARTY}
