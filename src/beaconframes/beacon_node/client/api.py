"""The Beacon API of a node: one method per route, each checked as far as one answer allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from beaconframes.beacon_node.client.checked_requests import MAX_SLOT
from beaconframes.beacon_node.client.records import (
    BlockHeader,
    Checkpoints,
    CommitteeLabel,
    Event,
    SyncCommittee,
    ValidatorDuty,
)
from beaconframes.beacon_node.client.rewards import RewardsApi
from beaconframes.beacon_node.client.session import SLOW, SSZ
from beaconframes.beacon_node.client.signed_block import SignedBlock
from beaconframes.beacon_node.client.validator_rows import ValidatorRow
from beaconframes.consensus.shuffling import Committees
from beaconframes.consensus.spec import FAR_FUTURE_EPOCH
from beaconframes.errors import BadRequest, IntegrityError, NotFound, NotServed
from beaconframes.text import shorten

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Iterator, Sequence

    from beaconframes.beacon_node.client.session import NodeSession
    from beaconframes.consensus.registry import Ints

HEADER: Final = "/eth/v1/beacon/headers/{block_id}"
MAX_IDS: Final = 5000
"""Identifiers of one POST request."""
MAX_IDS_IN_QUERY: Final = 64
"""Identifiers of one GET request: as many as fit into an address, as the specification says."""
SSZ_HEAD: Final = np.dtype([("time", "<u8"), ("root", "V32"), ("slot", "<u8")])
"""With what a state begins."""


class BeaconApi(RewardsApi):
    """The Beacon API of one node: thread-safe, with connections that stay open.

    Methods return the ``data`` of the response, parsed, or SSZ bytes. What is impossible in one
    answer is an error; `corrected` counts the quirks of the client that were repaired. Only the
    balances of an epoch show that its rewards are right: see `beaconframes.reconcile`.
    """

    def __init__(self, session: NodeSession) -> None:
        """Send requests by *session*."""
        super().__init__(session)
        self._has_post_ids = True
        self._eligibility: dict[str, int] = {}
        """First epoch in which each validator of the head is known to exist, by index and key."""

    # Blocks.

    def block(self, block_id: int | str) -> dict[str, Any] | None:
        """Return a block by slot, root, ``head`` or ``finalized``.

        None if the slot has no block, or if the node does not have it: the parent root of the next
        block distinguishes the two.
        """
        route = "/eth/v2/beacon/blocks/{block_id}"
        try:
            page = self._fetch(route, {"block_id": block_id})
        except NotFound:
            return None
        text = page.data.lower()  # Roots and signatures are compared as texts.
        self._decode(route, text, SignedBlock)
        data = _drop_null(self._decode(route, text, dict[str, Any]))
        self._check_slot(route, block_id, data["message"]["slot"])
        return data

    def header(self, block_id: int | str = "head") -> dict[str, Any] | None:
        """Return root and header of a block; None if the slot has none."""
        try:
            data = self._get_object(HEADER, {"block_id": block_id}, BlockHeader)
        except NotFound:
            return None
        self._check_slot(HEADER, block_id, data["header"]["message"]["slot"])
        return data

    def head(self) -> dict[str, Any]:
        """Return root and header of the head."""
        return self._get_object(HEADER, {"block_id": "head"}, BlockHeader)

    def read_head(self) -> tuple[int, int]:
        """Return the slot of the head and the epoch of the finalized checkpoint."""
        self.optimistic_slot = None
        slot = int(self.head()["header"]["message"]["slot"])
        epoch = int(self.finality("head")["finalized"]["epoch"])
        if epoch > slot // self.chain_spec.slots_per_epoch or slot >= MAX_SLOT:
            raise self._integrity_error(
                "/eth/v1/beacon/states/{state_id}/finality_checkpoints",
                f"epoch {epoch} is finalized, but the head is slot {slot}",
                hint="Check that the node is synchronized and of the right chain",
            )
        return slot, epoch

    # States.

    def finality(self, state_id: int | str = "head") -> dict[str, Any]:
        """Return the justified and finalized checkpoints of a state."""
        route = "/eth/v1/beacon/states/{state_id}/finality_checkpoints"
        return self._get_object(route, {"state_id": state_id}, Checkpoints)

    def validators(
        self, state_id: int | str, ids: Iterable[int | str] | None = None
    ) -> list[ValidatorRow]:
        """Return balance, status and record of validators in a state.

        Without *ids*, of all: on mainnet about 1 GB of JSON, so that `state` is the better choice.

        *ids* are indices or public keys. One that does not exist at that time has no row. One that
        must exist and is missing in the response is an error.
        """
        chosen = None if ids is None else [str(each) for each in ids]
        if chosen == []:
            return []
        rows = self._request_validators(state_id, chosen)
        if chosen is not None:
            found = {text for row in rows for text in (str(row.index), row.validator.pubkey)}
            if missing := [each for each in dict.fromkeys(chosen) if each not in found]:
                self._check_missing(state_id, missing, rows)
        return rows

    def request_has_validator(self, index: int) -> bool:
        """Request a validator of the head, and return whether it exists.

        Indices have no gaps: if it exists, the chain has more than *index* validators.
        """
        return bool(self.validators("head", [index]))

    def committees(self, state_id: int | str, epoch: int) -> Committees:
        """Return the attestation committees of an epoch."""
        route = "/eth/v1/beacon/states/{state_id}/committees"
        page = self._fetch(route, {"state_id": state_id}, query=[("epoch", epoch)], timeouts=SLOW)
        labels = self._decode(route, page.data, list[CommitteeLabel])
        if any(self.chain_spec.epoch_of(label.slot) != epoch for label in labels):
            self.count_correction("committee-labels")
        rows = self._decode(route, page.data, list[dict[str, Any]])
        return Committees.from_api(self.chain_spec, epoch, rows)

    def sync_committee(self, state_id: int | str, epoch: int) -> Ints:
        """Return the validator of each seat of the sync committee of an epoch."""
        route = "/eth/v1/beacon/states/{state_id}/sync_committees"
        page = self._fetch(route, {"state_id": state_id}, query=[("epoch", epoch)], timeouts=SLOW)
        seats = self._decode(route, page.data, SyncCommittee).validators
        if len(seats) != self.chain_spec.sync_committee_size:
            raise self._schema_error(
                route,
                f"has {len(seats)} validators, but SYNC_COMMITTEE_SIZE is "
                f"{self.chain_spec.sync_committee_size}",
            )
        return np.array(seats, np.int64)

    def pending_deposits(self, state_id: int | str) -> list[dict[str, Any]]:
        """Return the pending deposits of a state, since Electra."""
        return self._get_pending("pending_deposits", state_id)

    def pending_consolidations(self, state_id: int | str) -> list[dict[str, Any]]:
        """Return the pending consolidations of a state, since Electra."""
        return self._get_pending("pending_consolidations", state_id)

    def state(self, state_id: int | str, *, first_bytes: int | None = None) -> bytes:
        """Return a whole state as SSZ, on mainnet about 350 MB, or its *first_bytes* alone."""
        route = "/eth/v2/debug/beacon/states/{state_id}"
        page = self._fetch(
            route, {"state_id": state_id}, accept=SSZ, timeouts=SLOW, first_bytes=first_bytes
        )
        if len(page.data) < SSZ_HEAD.itemsize:
            raise self._schema_error(route, f"has {len(page.data)} bytes only")
        head = np.frombuffer(page.data, SSZ_HEAD, 1)[0]
        genesis = int(head["time"]), bytes(head["root"])
        if genesis != (self.chain_spec.genesis_time, self.chain_spec.genesis_validators_root):
            raise self._integrity_error(
                route,
                f"the state has genesis time {genesis[0]}, the node states "
                f"{self.chain_spec.genesis_time}",
                "old-genesis",
                hint="Delete the data folder of the node and start it again",
            )
        self._check_slot(route, state_id, int(head["slot"]))
        return page.data

    # Duties and events.

    def proposer_duties(self, epoch: int) -> dict[int, int]:
        """Return the proposer of each slot of an epoch."""
        route = "/eth/v1/validator/duties/proposer/{epoch}"
        page = self._fetch(route, {"epoch": epoch}, timeouts=SLOW)
        duties = self._decode(route, page.data, list[ValidatorDuty])
        proposers = {duty.slot: duty.validator_index for duty in duties}
        size = self.chain_spec.slots_per_epoch
        expected = {*range(epoch * size, (epoch + 1) * size)}
        wrong = {duty.slot for duty in duties if proposers[duty.slot] != duty.validator_index}
        # Clients omit slot 0, which has no proposer.
        wrong |= (proposers.keys() - expected) | (expected - proposers.keys() - {0})
        if wrong:
            raise self._schema_error(
                route,
                f"does not have one proposer for each slot of epoch {epoch}: "
                f"{shorten(sorted(wrong))}",
            )
        return proposers

    def attester_duties(self, epoch: int, validators: Iterable[int]) -> list[ValidatorDuty]:
        """Return the slot that each of the validators attests in an epoch."""
        route = "/eth/v1/validator/duties/attester/{epoch}"
        duties = self._post_duties(route, epoch, validators)
        size = self.chain_spec.slots_per_epoch
        if wrong := [duty.slot for duty in duties if duty.slot // size != epoch]:
            raise self._schema_error(route, f"has slot {wrong[0]}, which is not in epoch {epoch}")
        return duties

    def sync_duties(self, epoch: int, validators: Iterable[int]) -> list[ValidatorDuty]:
        """Return those of the validators that are in the sync committee of an epoch."""
        return self._post_duties("/eth/v1/validator/duties/sync/{epoch}", epoch, validators)

    def _post_duties(
        self, route: str, epoch: int, validators: Iterable[int]
    ) -> list[ValidatorDuty]:
        body = [str(index) for index in sorted(validators)]
        page = self._fetch(route, {"epoch": epoch}, body=body, timeouts=SLOW)
        return self._decode(route, page.data, list[ValidatorDuty])

    def events(
        self, topics: Sequence[str], *, stop: threading.Event | None = None
    ) -> Iterator[Event]:
        """Yield the events of *topics* as they happen, until the connection ends with an error."""
        query = [("topics", topic) for topic in topics]
        name, lines = "", []
        for line in self.session.stream_lines("/eth/v1/events", query=query, stop=stop):
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                name = value
            elif field == "data":
                lines.append(value)
            elif not line and lines:
                text = "\n".join(lines).lower()
                data = self._decode("/eth/v1/events", text.encode(), dict[str, Any])
                yield Event(name, data)
                name, lines = "", []

    # Requests.

    def _get_pending(self, name: str, state_id: int | str) -> list[dict[str, Any]]:
        route = f"/eth/v1/beacon/states/{{state_id}}/{name}"
        try:
            page = self._fetch(route, {"state_id": state_id}, timeouts=SLOW)
        except BadRequest as error:
            # Some clients answer so where they do not have the route.
            raise NotServed(error.message, hint=error.hint, endpoint=error.endpoint) from None
        return self._decode(route, page.data.lower(), list[dict[str, Any]])

    def _request_validators(self, state_id: int | str, ids: list[str] | None) -> list[ValidatorRow]:
        route = "/eth/v1/beacon/states/{state_id}/validators"
        arguments = {"state_id": state_id}
        if ids is None:
            page = self._fetch(route, arguments, timeouts=SLOW)
            return self._decode(route, page.data, list[ValidatorRow])
        rows: list[ValidatorRow] = []
        start = 0
        while start < len(ids):
            if self._has_post_ids:
                part = ids[start : start + MAX_IDS]
                try:
                    page = self._fetch(route, arguments, body={"ids": part}, timeouts=SLOW)
                except NotServed:
                    # Old clients have this route for GET only.
                    self._has_post_ids = False
                    continue
            else:
                part = ids[start : start + MAX_IDS_IN_QUERY]
                query = [("id", each) for each in part]
                page = self._fetch(route, arguments, query=query, timeouts=SLOW)
            rows += self._decode(route, page.data, list[ValidatorRow])
            start += len(part)
        return rows

    def _check_missing(
        self, state_id: int | str, missing: list[str], rows: list[ValidatorRow]
    ) -> None:
        """Raise IntegrityError if a *missing* validator must have existed in the state."""
        unknown = [each for each in missing if each not in self._eligibility]
        if unknown:
            # Validator 0 always exists: without it, the node drops validators.
            known = self._request_validators("head", [*unknown, "0"])
            found = dict.fromkeys(unknown, FAR_FUTURE_EPOCH)
            for row in known:
                epoch = row.validator.activation_eligibility_epoch
                found[str(row.index)] = found[row.validator.pubkey] = epoch
            if not any(row.index == 0 for row in known):
                raise self._missing_error("head", ["0"])
            self._eligibility |= found
        epoch = FAR_FUTURE_EPOCH - 1
        if str(state_id).isdigit():
            epoch = int(state_id) // self.chain_spec.slots_per_epoch
        # A registry only grows: below an index that exists, all exist.
        last = max((row.index for row in rows), default=-1)
        lost = [
            each
            for each in missing
            if self._eligibility.get(each, FAR_FUTURE_EPOCH) <= epoch
            or (each.isdigit() and int(each) < last)
        ]
        if lost:
            raise self._missing_error(state_id, lost)

    def _missing_error(self, state_id: int | str, lost: list[str]) -> IntegrityError:
        return self._integrity_error(
            "/eth/v1/beacon/states/{state_id}/validators",
            f"state {state_id}: validators {shorten(lost)} were requested, and are not in the "
            "response",
            "empty-data",
        )


def _drop_null(fields: dict[str, Any]) -> dict[str, Any]:
    """Return JSON without the fields that are null: some clients write absent ones so."""
    return {
        name: _drop_null(value) if isinstance(value, dict) else value
        for name, value in fields.items()
        if value is not None
    }
