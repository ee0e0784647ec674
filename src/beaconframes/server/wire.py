"""In whose words the local explorer answers: the specification's, or the public service's.

Both tell of the same rows. The public service has other spellings and other errors, writes one
record as an object where the specification has a list, answers with nothing where that has an
error, and takes less for granted: what a table cannot say of that stands here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeAlias

from beaconframes.endpoint import Endpoint, Envelope, Refused, Shape
from beaconframes.endpoint.identifiers import is_pubkey, numeral

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from beaconframes.endpoint import Fields, View

Wire: TypeAlias = Literal["spec", "public"]

SHAPES = {
    "yield_index": Shape.OBJECT,
    "slot_withdrawals": Shape.OBJECT_IF_ALONE,
    "transaction_deposits": Shape.OBJECT_IF_ALONE,
}
"""How the public service writes the data of an answer, where the specification says otherwise."""

ALSO = {
    "epoch_slots": "/api/v1/epoch/{epoch}/blocks",
    "slots": "/api/v1/block/{slot}",
    "slot_attestations": "/api/v1/block/{slot}/attestations",
    "attestation_efficiency": "/api/v1/validator/{validators}/attestationeffectiveness",
}
"""Second paths of the public service, beside those that the declarations name."""

NUMBERS_ONLY = {
    "attester_slashings",
    "proposer_slashings",
    "voluntary_exits",
    "slot_withdrawals",
    "slot_deposits",
}
"""Lists of a slot that take no word for it and judge no number."""

FIRST_WINDOW = 100
"""The epoch for which proposals are told when an earlier one is asked for."""

NEVER = "9" * 18
LENGTH_OF_A_ROOT = 64
INTEGER = re.compile(r"-?[0-9]+", re.ASCII)


def asked(endpoint: Endpoint, fields: Fields, view: View, wire: Wire) -> Fields:
    """Return the *fields* of a request with what they mean on this *wire*."""
    if wire == "spec":
        return fields
    if endpoint.name == "bls_changes":
        return {**fields, "validators": resolved(fields["validators"], view)}
    if endpoint.name == "graffiti_wall":
        return {"summarize": "true", **fields}
    if endpoint.name == "proposals" and "epoch" in fields:
        epoch = numeral(fields["epoch"])
        early = epoch is not None and epoch < FIRST_WINDOW
        return {**fields, "epoch": str(FIRST_WINDOW)} if early else fields
    name = "slot" if endpoint.name in NUMBERS_ONLY else "day"
    text = fields.get(name, "")
    if endpoint.name in NUMBERS_ONLY and not INTEGER.fullmatch(text):
        raise Refused("invalid block slot provided")
    if endpoint.name in {*NUMBERS_ONLY, "yield_index"} and text.startswith("-"):
        # It looks for what cannot exist, and finds nothing.
        return {**fields, name: NEVER} if INTEGER.fullmatch(text) else fields
    return fields


def resolved(identifiers: str, view: View) -> str:
    """Return *identifiers*, nobody in place of each key that no validator has, unless all are."""
    items = identifiers.split(",")
    unknown = {
        item
        for item in items
        if is_pubkey(item) and view.index_of(f"0x{item.lower().removeprefix('0x')}") is None
    }
    if unknown.issuperset(items):
        return identifiers
    return ",".join(NEVER if item in unknown else item for item in items)


def body(endpoint: Endpoint, records: pl.DataFrame, fields: Fields, wire: Wire) -> bytes:
    """Return the body of an answer with *records*; raise Refused when none is an error."""
    public = wire == "public"
    shape = SHAPES.get(endpoint.name, endpoint.shape) if public else endpoint.shape
    if records.is_empty() and shape is Shape.OBJECT and not may_be_absent(endpoint, fields, wire):
        raise Refused(endpoint.absent or "invalid request")
    before, after = b'{"status":"OK","data":', b"}"
    if endpoint.envelope is Envelope.CODE:
        before = b'{"code":200,"data":'
    if endpoint.envelope is Envelope.BARE and public:
        before, after = b"", b""
    if shape is Shape.LIST or records.height != 1:
        before, after = before + b"[", b"]" + after
    return b"".join((before, endpoint.table.write_json(records, public=public), after))


def may_be_absent(endpoint: Endpoint, fields: Fields, wire: Wire) -> bool:
    """Tell whether no rows are an empty list although one object was asked for."""
    if endpoint.name == "slots":
        return len(fields["slot"]) >= LENGTH_OF_A_ROOT
    return wire == "public" and not endpoint.absent


def words(endpoint: Endpoint, message: str, fields: Fields, view: View, wire: Wire) -> str:
    """Return how the error *message* is worded on this *wire*."""
    if wire == "spec":
        return message
    if endpoint.name in ("epochs", "epoch_slots"):
        return of_an_epoch(fields["epoch"], view)
    if endpoint.name == "proposals" and message.startswith("invalid epoch"):
        return f'strconv.ParseUint: parsing "{fields["epoch"]}": invalid syntax'
    return OTHERWISE.get(endpoint.name, {}).get(message, message)


def of_an_epoch(text: str, view: View) -> str:
    """Return what is wrong with an epoch."""
    if not INTEGER.fullmatch(text):
        return "invalid epoch provided"
    if text.startswith("-"):
        return "epoch must be a positive number"
    return f"epoch is in the future. The latest epoch is {view.head.epoch}"


OTHERWISE: Mapping[str, Mapping[str, str]] = {
    "sync_committees": {"invalid epoch parameter": "invalid epoch provided"},
    "yield_index": {"invalid day parameter": "invalid day provided"},
}
"""Error messages that the public service words otherwise."""
