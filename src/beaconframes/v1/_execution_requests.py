"""Requests of the execution layer in blocks: deposits, consolidations, switches to compounding.

The public service serves them without a description of their fields, so there are no loaders. The
local explorer serves them with the columns of the service's tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from beaconframes.endpoint import Endpoint, Identifiers, Pages
from beaconframes.schema import Count, Gwei, Hex, Slot, Table
from beaconframes.v1._slot_items import SlotItems

if TYPE_CHECKING:
    from beaconframes.schema import Column

PAGES = Pages(at_most=100, default=100)


class DepositRequests(Table):
    """Deposit requests. One row per request in an execution block."""

    block_slot = Slot("Slot of the block.", key=True)
    block_root = Hex("Root of the block.")
    request_index = Count("Position among the deposit requests of the block, from 0.", key=True)
    pubkey = Hex("BLS public key of the validator.")
    withdrawal_credentials = Hex("Withdrawal credentials of the deposit, 32 bytes.")
    amount_gwei = Gwei("Deposited amount.", wire="amount")
    signature = Hex("Signature of the deposit.")


class ConsolidationRequests(Table):
    """Consolidations. One row per balance that moved from one validator to another."""

    block_slot = Slot("Slot of the block.", key=True)
    block_root = Hex("Root of the block.")
    request_index = Count("Position among the consolidations of the block, from 0.", key=True)
    source_index = Count("Validator that exits.")
    target_index = Count("Validator that receives the balance.")
    amount_gwei = Gwei("Moved balance.", wire="amount_consolidated")


class SwitchToCompoundingRequests(Table):
    """Switches to compounding credentials. One row per switch."""

    block_slot = Slot("Slot of the block.", key=True)
    block_root = Hex("Root of the block.")
    request_index = Count("Position among the switches of the block, from 0.", key=True)
    address = Hex("Withdrawal address, the sender of the request.")
    validator_index = Count("Validator.")


@dataclass(frozen=True)
class SourceOrTarget(Identifiers):
    """Validators whose balance moved, or that received a balance."""


def declare_list(kind: str, table: type[Table], slot: Column) -> Endpoint:
    """Return the endpoint with the requests of one *kind* in a slot."""
    slots = SlotItems("slots", slot, order="request_index", descending=False, validates_slot=True)
    return Endpoint(
        f"slot_{kind}",
        route=f"GET /api/v1/slot/{{slot}}/{kind}",
        table=table,
        parameters=(slots,),
        pagination=PAGES,
    )


REQUEST_LISTS = (
    declare_list("deposit_requests", DepositRequests, DepositRequests.block_slot),
    declare_list("consolidation_requests", ConsolidationRequests, ConsolidationRequests.block_slot),
    declare_list(
        "switch_to_compounding_requests",
        SwitchToCompoundingRequests,
        SwitchToCompoundingRequests.block_slot,
    ),
    Endpoint(
        "validator_consolidation_requests",
        route="GET /api/v1/validator/{validators}/consolidation_requests",
        table=ConsolidationRequests,
        parameters=(
            SourceOrTarget("validators", ConsolidationRequests.source_index, required=False),
        ),
        pagination=PAGES,
    ),
    Endpoint(
        "validator_switch_to_compounding_requests",
        route="GET /api/v1/validator/{validators}/switch_to_compounding_requests",
        table=SwitchToCompoundingRequests,
        parameters=(
            Identifiers("validators", SwitchToCompoundingRequests.validator_index, required=False),
        ),
        pagination=PAGES,
    ),
)
