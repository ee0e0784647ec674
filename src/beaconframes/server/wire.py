"""The two wire formats of the local explorer: that of the specification and the public one.

Both have the same rows. The public service has other field names and error messages. It may send a
single record as an object instead of a list, and an empty list instead of an error. This module
holds the differences that the declarations of tables and endpoints do not state.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeAlias

from beaconframes.answers.answer import EXACTLY_ONE, refuse_empty
from beaconframes.endpoint import Endpoint, Envelope, RequestRefused, Shape
from beaconframes.endpoint.identifiers import UNUSED_NUMBER, is_pubkey, parse_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.derive.chain_tables import View
    from beaconframes.endpoint import Fields, JsonSchema

Wire: TypeAlias = Literal["spec", "public"]

SHAPES = {
    "yield_index": Shape.OBJECT,
    "slot_withdrawals": Shape.OBJECT_IF_SINGLE,
    "transaction_deposits": Shape.OBJECT_IF_SINGLE,
}
"""The shape of the data on the public wire, where it differs from the specification."""

EXTRA_PATHS = {
    "epoch_slots": "/api/v1/epoch/{epoch}/blocks",
    "slots": "/api/v1/block/{slot}",
    "slot_attestations": "/api/v1/block/{slot}/attestations",
    "attestation_efficiency": "/api/v1/validator/{validators}/attestationeffectiveness",
}
"""Further paths of the public service, beside those of the declarations."""

NUMERIC_SLOT_ONLY = {
    "attester_slashings",
    "proposer_slashings",
    "voluntary_exits",
    "slot_withdrawals",
    "slot_deposits",
}
"""Lists of a slot whose path takes a number only, of any size."""

MIN_PROPOSALS_EPOCH = 100
"""The epoch that replaces earlier ones in requests for proposals."""

INTEGER = re.compile(r"-?[0-9]+", re.ASCII)


def translate_fields(endpoint: Endpoint, fields: Fields, view: View, wire: Wire) -> Fields:
    """Return the *fields* of a request on this *wire*, translated to the specification."""
    if wire == "spec":
        return fields
    for parameter in endpoint.all_parameters:
        fields = parameter.public_fields(fields)
    if endpoint.name == "bls_changes":
        return {**fields, "validators": replace_unknown_pubkeys(fields["validators"], view)}
    if endpoint.name == "graffiti_wall":
        return {"summarize": "true", **fields}
    if endpoint.name == "proposals" and "epoch" in fields:
        epoch = parse_number(fields["epoch"])
        early = epoch is not None and epoch < MIN_PROPOSALS_EPOCH
        return {**fields, "epoch": str(MIN_PROPOSALS_EPOCH)} if early else fields
    name = "slot" if endpoint.name in NUMERIC_SLOT_ONLY else "day"
    text = fields.get(name, "")
    if endpoint.name in NUMERIC_SLOT_ONLY and not INTEGER.fullmatch(text):
        raise RequestRefused("invalid block slot provided")
    if endpoint.name in {*NUMERIC_SLOT_ONLY, "yield_index"} and text.startswith("-"):
        # The public service finds no rows for a negative number.
        return {**fields, name: UNUSED_NUMBER} if INTEGER.fullmatch(text) else fields
    return fields


def describe_fields(endpoint: Endpoint, wire: Wire) -> dict[str, JsonSchema]:
    """Return the JSON Schema of each field of a request on this *wire*."""
    if wire == "spec":
        return {n: s for p in endpoint.all_parameters for n, s in p.field_schemas.items()}
    fields = {n: s for p in endpoint.all_parameters for n, s in p.public_schemas().items()}
    if endpoint.name in NUMERIC_SLOT_ONLY:
        fields["slot"] = {"type": "integer"}
    if endpoint.name == "yield_index":
        fields["day"] = {"anyOf": [{"type": "integer"}, fields["day"]]}
    return fields


def replace_unknown_pubkeys(identifiers: str, view: View) -> str:
    """Return *identifiers* with an unused index for each unknown key, unless all are unknown."""
    items = identifiers.split(",")
    unknown = {
        item
        for item in items
        if is_pubkey(item) and view.indices.get(f"0x{item.lower().removeprefix('0x')}") is None
    }
    if unknown.issuperset(items):
        return identifiers
    return ",".join(UNUSED_NUMBER if item in unknown else item for item in items)


def encode_body(endpoint: Endpoint, records: list[bytes], fields: Fields, wire: Wire) -> bytes:
    """Return the body of a response; raise RequestRefused if required *records* are missing."""
    public = wire == "public"
    shape = SHAPES.get(endpoint.name, endpoint.shape) if public else endpoint.shape
    is_list = public and (endpoint.name in EXACTLY_ONE or not endpoint.absent)
    if not records and not is_list and (refusal := refuse_empty(endpoint, fields)) is not None:
        raise refusal
    before, after = b'{"status":"OK","data":', b"}"
    if endpoint.envelope is Envelope.CODE:
        before = b'{"code":200,"data":'
    if endpoint.envelope is Envelope.BARE and public:
        before, after = b"", b""
    if shape is Shape.LIST or len(records) != 1:
        before, after = before + b"[", b"]" + after
    if not records:
        return before + after
    # A large body is copied once.
    parts = list(records)
    parts[0] = before + parts[0]
    parts[-1] += after
    return b",".join(parts)


def translate_error(
    endpoint: Endpoint, message: str, fields: Fields, view: View, wire: Wire
) -> str:
    """Return an error *message* of the specification, translated to this *wire*."""
    if wire == "spec":
        return message
    if endpoint.name in ("epochs", "epoch_slots"):
        return describe_epoch_error(fields["epoch"], view)
    if endpoint.name == "proposals" and message.startswith("invalid epoch"):
        return f'strconv.ParseUint: parsing "{fields["epoch"]}": invalid syntax'
    return PUBLIC_MESSAGES.get(endpoint.name, {}).get(message, message)


def describe_epoch_error(text: str, view: View) -> str:
    """Return the public service's error message for an epoch that is not valid."""
    if not INTEGER.fullmatch(text):
        return "invalid epoch provided"
    if text.startswith("-"):
        return "epoch must be a positive number"
    return f"epoch is in the future. The latest epoch is {view.head.epoch}"


PUBLIC_MESSAGES: Mapping[str, Mapping[str, str]] = {
    "sync_committees": {"invalid epoch parameter": "invalid epoch provided"},
    "yield_index": {"invalid day parameter": "invalid day provided"},
}
"""Error messages of the public service, by endpoint and message of the specification."""
