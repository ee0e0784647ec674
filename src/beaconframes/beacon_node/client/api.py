"""The Beacon API of a node: one method per route, each checked as far as one answer allows."""

from __future__ import annotations

import functools
import logging
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
import numpy as np

from beaconframes.beacon_node.client.quirks import QUIRKS
from beaconframes.beacon_node.client.records import (
    AttestationReward,
    AttestationRewardRows,
    AttestationRewards,
    BlockHeader,
    BlockRewards,
    Checkpoints,
    CommitteeLabel,
    Event,
    SyncCommittee,
    SyncReward,
)
from beaconframes.beacon_node.client.session import QUICK, SLOW, SSZ
from beaconframes.beacon_node.client.signed_block import SignedBlock
from beaconframes.beacon_node.client.validator_rows import ValidatorRow
from beaconframes.consensus.spec import FAR_FUTURE_EPOCH, Spec
from beaconframes.errors import (
    BadRequest,
    IntegrityError,
    NotFound,
    NotServed,
    SchemaError,
    UsageError,
)
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import NoReturn, Self

    from numpy.typing import NDArray

    from beaconframes.beacon_node.client.session import NodeSession
    from beaconframes.http.response import ResponsePage

T = TypeVar("T")

log = logging.getLogger("beaconframes.node")

MAX_REWARD: Final = 10**9
"""Gwei: no reward of one block, and no reward of one epoch's attestation, is higher."""
MAX_SLOT: Final = 2**40
"""No chain has a head after it."""
MAX_IDS: Final = 5000
"""Identifiers of one POST request."""
MAX_IDS_IN_QUERY: Final = 64
"""Identifiers of one GET request: as many as fit into an address, as the specification says."""
_SSZ_HEAD: Final = np.dtype([("time", "<u8"), ("root", "V32"), ("slot", "<u8")])


class BeaconApi:
    """The Beacon API of one node: thread-safe, with connections that stay open.

    Methods return the ``data`` of the response, parsed, or SSZ bytes. What is impossible in one
    answer is an error; `corrected` counts the quirks of the client that were repaired. Only the
    balances of an epoch show that its rewards are right: see `beaconframes.reconcile`.
    """

    def __init__(self, session: NodeSession) -> None:
        """Send requests by *session*."""
        self.session = session
        self.corrected: Counter[str] = Counter()
        """How often each quirk was repaired, by the names of `QUIRKS`."""
        self._lock = threading.Lock()
        self._has_post_ids = True
        self._eligibility: dict[str, int] = {}
        """First epoch in which each validator of the head is known to exist, by index and key."""
        self._final_slot_count = 0
        """Slots before the finalized checkpoint that was read last."""
        self.optimistic_slot: int | None = None
        """The first slot of which a response was optimistic, since the head was read last.

        None if the execution node has verified all blocks. If only the head was requested, a slot
        after it.
        """
        self._warned: set[str] = set()
        """The members of envelopes of which a warning was logged."""

    def __repr__(self) -> str:
        client = self.session.client_version
        return f"BeaconApi({self.url!r}{f', client={client!r}' if client else ''})"

    def __reduce__(self) -> NoReturn:
        """Raise a UsageError: connections cannot be pickled, and credentials must not be."""
        raise UsageError(
            "a BeaconApi cannot be pickled or copied",
            hint="Create one from the address of the node in each process",
        )

    def __enter__(self) -> Self:
        """Return the API itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close all connections."""
        self.close()

    @property
    def url(self) -> str:
        """Return the address without credentials."""
        return self.session.url

    @property
    def requests(self) -> Counter[str]:
        """Return the number of requests by route, retries not included."""
        return self.session.requests

    @property
    def request_count(self) -> int:
        """Return the number of requests, retries included."""
        return self.session.request_count

    def close(self) -> None:
        """Close all connections; a later request opens new ones."""
        self.session.close()

    # The node.

    def version(self) -> str:
        """Return client and version, such as ``Lighthouse/v8.0.1-9f31cd0``; requested once."""
        if not self.session.client_version:
            page = self._fetch("/eth/v1/node/version", timeouts=QUICK)
            data = self._decode("/eth/v1/node/version", page.data, dict[str, Any])
            version = data.get("version")
            if not isinstance(version, str) or not version:
                raise self._schema_error("/eth/v1/node/version", "has no version")
            self.session.client_version = version[:120]
        return self.session.client_version

    def syncing(self) -> dict[str, Any]:
        """Return whether the node is synchronizing, and how far it is behind."""
        return self._get_object("/eth/v1/node/syncing")

    def spec(self) -> dict[str, Any]:
        """Return the constants of the chain as the node states them."""
        return self._get_object("/eth/v1/config/spec")

    def genesis(self) -> dict[str, Any]:
        """Return genesis time, root of the genesis validators and the first fork version."""
        return self._get_object("/eth/v1/beacon/genesis")

    @functools.cached_property
    def chain_spec(self) -> Spec:
        """Return the constants of the chain, parsed; requested once, by two requests."""
        return Spec.parse(self.spec(), self.genesis())

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
        text = _lower_hex(page.data)
        self._decode(route, text, SignedBlock)
        data = _drop_null(self._decode(route, text, dict[str, Any]))
        self._check_slot(route, block_id, data, ("message", "slot"))
        return data

    def header(self, block_id: int | str = "head") -> dict[str, Any] | None:
        """Return root and header of a block; None if the slot has none."""
        route = "/eth/v1/beacon/headers/{block_id}"
        try:
            data = self._get_object(route, {"block_id": block_id}, BlockHeader)
        except NotFound:
            return None
        self._check_slot(route, block_id, data, ("header", "message", "slot"))
        return data

    def head(self) -> dict[str, Any]:
        """Return root and header of the head."""
        header = self.header("head")
        if header is None:
            raise NotFound(
                "the node has no head block",
                hint="Wait until it is synchronized",
                endpoint="GET /eth/v1/beacon/headers/{block_id}",
            )
        return header

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
        self._final_slot_count = self.chain_spec.first_slot_of(epoch)
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
        if chosen is not None and (missing := _find_missing(chosen, rows)):
            self._check_missing(state_id, missing, rows)
        return rows

    def request_has_validator(self, index: int) -> bool:
        """Request a validator of the head, and return whether it exists.

        Indices have no gaps: if it exists, the chain has more than *index* validators.
        """
        return bool(self.validators("head", [index]))

    def committees(self, state_id: int | str, epoch: int) -> list[dict[str, Any]]:
        """Return the attestation committees of an epoch, with the labels that the client gives."""
        route = "/eth/v1/beacon/states/{state_id}/committees"
        page = self._fetch(route, {"state_id": state_id}, query=[("epoch", epoch)], timeouts=SLOW)
        labels = self._decode(route, page.data, list[CommitteeLabel])
        count, size = len(labels), self.chain_spec.slots_per_epoch
        if count == 0 or count % size:
            raise self._schema_error(
                route, f"has {count} committees for the {size} slots of epoch {epoch}"
            )
        if any(label.slot // size != epoch for label in labels):
            self.count_correction("committee-labels")
        return self._decode(route, page.data, list[dict[str, Any]])

    def sync_committee(self, state_id: int | str, epoch: int) -> NDArray[np.int64]:
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

    def pending_partial_withdrawals(self, state_id: int | str) -> list[dict[str, Any]]:
        """Return the pending partial withdrawals of a state, since Electra."""
        return self._get_pending("pending_partial_withdrawals", state_id)

    def pending_consolidations(self, state_id: int | str) -> list[dict[str, Any]]:
        """Return the pending consolidations of a state, since Electra."""
        return self._get_pending("pending_consolidations", state_id)

    def state(self, state_id: int | str) -> bytes:
        """Return a whole state as SSZ: on mainnet about 350 MB."""
        return self._request_state(state_id)

    def check_state(self, state_id: int | str) -> None:
        """Raise the error that `state` would raise, without reading the whole state."""
        self._request_state(state_id, first_bytes=_SSZ_HEAD.itemsize)

    def _request_state(self, state_id: int | str, first_bytes: int | None = None) -> bytes:
        route = "/eth/v2/debug/beacon/states/{state_id}"
        page = self._fetch(
            route, {"state_id": state_id}, accept=SSZ, timeouts=SLOW, first_bytes=first_bytes
        )
        if len(page.data) < _SSZ_HEAD.itemsize:
            raise self._schema_error(route, f"has {len(page.data)} bytes only")
        head = np.frombuffer(page.data, _SSZ_HEAD, 1)[0]
        genesis = int(head["time"]), bytes(head["root"])
        if genesis != (self.chain_spec.genesis_time, self.chain_spec.genesis_validators_root):
            raise self._integrity_error(
                route,
                f"the state has genesis time {genesis[0]}, the node states "
                f"{self.chain_spec.genesis_time}",
                "old-genesis",
                hint="Delete the data folder of the node and start it again",
            )
        self._check_slot(route, state_id, {"slot": int(head["slot"])}, ("slot",))
        return page.data

    # Duties and rewards.

    def proposer_duties(self, epoch: int) -> list[dict[str, Any]]:
        """Return the proposer of each slot of an epoch."""
        route = "/eth/v1/validator/duties/proposer/{epoch}"
        page = self._fetch(route, {"epoch": epoch}, timeouts=SLOW)
        duties = self._decode(route, page.data, list[dict[str, Any]])
        slots = {str(duty.get("slot")) for duty in duties}
        size = self.chain_spec.slots_per_epoch
        expected = {str(slot) for slot in range(epoch * size, (epoch + 1) * size)}
        # The genesis block has no proposer.
        if slots | {"0"} != expected | {"0"}:
            wrong = sorted(slots ^ expected, key=lambda text: (len(text), text))
            raise self._schema_error(
                route, f"does not have the slots of epoch {epoch}: {shorten(wrong)}"
            )
        return duties

    def attestation_rewards(self, epoch: int, ids: Sequence[int] | None) -> AttestationRewardRows:
        """Return the attestation rewards of an epoch, sorted by validator.

        *ids* are validators that were active in the epoch, or slashed and not withdrawable; None
        for all. Each must be in the response.
        """
        route = "/eth/v1/beacon/rewards/attestations/{epoch}"
        body = [] if ids is None else [str(each) for each in ids]
        page = self._fetch(route, {"epoch": epoch}, body=body, timeouts=SLOW)
        decoded = self._decode(route, page.data, AttestationRewards)
        rewards = decoded.total_rewards
        if ids is not None:
            chosen = set(ids)
            rewards = [row for row in rewards if row.validator_index in chosen]
            if missing := sorted(chosen - {row.validator_index for row in rewards}):
                raise self._integrity_error(
                    route,
                    f"epoch {epoch}: validators {shorten(missing)} were requested, and are not "
                    "in the response",
                    "empty-data",
                )
        rewards.sort(key=lambda row: row.validator_index)
        self._check_rewards(route, epoch, rewards)
        indices, source, target, head, inactivity = (
            np.array([getattr(row, name) for row in rewards], np.int64)
            for name in ("validator_index", "source", "target", "head", "inactivity")
        )
        ideal = {
            (vote, row.effective_balance): getattr(row, vote)
            for row in decoded.ideal_rewards
            for vote in ("source", "target", "head")
        }
        return AttestationRewardRows(indices, source, target, head, inactivity, ideal)

    def block_rewards(self, block_id: int | str) -> dict[str, int]:
        """Return the proposer's reward for a block in gwei: its parts and their ``total``."""
        route = "/eth/v1/beacon/rewards/blocks/{block_id}"
        page = self._fetch(route, {"block_id": block_id}, timeouts=SLOW)
        rewards = msgspec.structs.asdict(self._decode(route, page.data, BlockRewards))
        parts = [rewards[name] for name in rewards if name not in {"proposer_index", "total"}]
        if sum(parts) != rewards["total"] or min(parts) < 0:
            raise self._schema_error(
                route, f"block {block_id}: the parts {parts} do not add up to {rewards['total']}"
            )
        return rewards

    def sync_rewards(self, block_id: int | str, ids: Sequence[int] | None = None) -> dict[int, int]:
        """Return the sync committee reward of a block in gwei by validator, the sum of its seats.

        *ids* that are not in the committee have no reward.
        """
        route = "/eth/v1/beacon/rewards/sync_committee/{block_id}"
        body = [] if ids is None else [str(each) for each in ids]
        page = self._fetch(route, {"block_id": block_id}, body=body, timeouts=SLOW)
        chosen = None if ids is None else set(ids)
        rewards: Counter[int] = Counter()
        rows = self._decode(route, page.data, list[SyncReward])
        for row in rows:
            if chosen is None or row.validator_index in chosen:
                rewards[row.validator_index] += row.reward
        if len({row.validator_index for row in rows}) < len(rows):
            self.count_correction("duplicate-sync-rewards")
        for index, reward in rewards.items():
            if abs(reward) > MAX_REWARD:
                raise self._integrity_error(
                    route,
                    f"block {block_id}: the sync committee reward of validator {index} is "
                    f"{reward} gwei, which is not a reward but a balance",
                    "sync-reward-is-balance",
                )
        return dict(rewards)

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
                text = _lower_hex("\n".join(lines).encode())
                data = self._decode("/eth/v1/events", text, dict[str, Any])
                yield Event(name, data)
                name, lines = "", []

    # Requests.

    def _fetch(self, route: str, path_arguments: Any = None, **options: Any) -> ResponsePage:
        page = self.session.fetch(route, path_arguments, **options)
        if page.envelope_fields.get("execution_optimistic") == b"true":
            self._note_optimistic(path_arguments or {})
        if page.envelope_fields.get("finalized") == b"false":
            self._check_final(path_arguments or {})
        return page

    def _note_optimistic(self, path_arguments: Mapping[str, object]) -> None:
        """Note the slot of a response whose block the execution node has not verified."""
        given = path_arguments.get("state_id", path_arguments.get("block_id"))
        if "epoch" in path_arguments:
            given = self.chain_spec.first_slot_of(int(str(path_arguments["epoch"])))
        slot = int(str(given)) if str(given).isdigit() else MAX_SLOT
        with self._lock:
            known = self.optimistic_slot
            self.optimistic_slot = slot if known is None else min(slot, known)

    def _check_final(self, path_arguments: Mapping[str, object]) -> None:
        """Warn of a response for a final slot that the node does not call final."""
        slot = str(path_arguments.get("state_id", path_arguments.get("block_id")))
        if slot.isdigit() and int(slot) < self._final_slot_count:
            self._warn_once(
                "finalized",
                f"{self._client()}: slot {slot} is not final in a response, but slots before "
                f"{self._final_slot_count} are finalized: if the address has several nodes "
                "behind it, one of them is behind",
            )

    def _warn_once(self, member: str, message: str) -> None:
        with self._lock:
            is_new = member not in self._warned
            self._warned.add(member)
        if is_new:
            log.warning(message)

    def _get_object(
        self, route: str, path_arguments: Any = None, kind: type[Any] | None = None
    ) -> dict[str, Any]:
        page = self._fetch(route, path_arguments)
        if kind is not None:
            self._decode(route, page.data, kind)
        return self._decode(route, page.data, dict[str, Any])

    def _get_pending(self, name: str, state_id: int | str) -> list[dict[str, Any]]:
        route = f"/eth/v1/beacon/states/{{state_id}}/{name}"
        try:
            page = self._fetch(route, {"state_id": state_id}, timeouts=SLOW)
        except BadRequest as error:
            # Some clients answer so where they do not have the route.
            raise NotServed(error.message, hint=error.hint, endpoint=error.endpoint) from None
        return self._decode(route, _lower_hex(page.data), list[dict[str, Any]])

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

    # Checks.

    def _decode(self, route: str, data: bytes, kind: type[T]) -> T:
        """Return JSON *data* as a value of this *kind*; numbers may be strings."""
        try:
            value: T = msgspec.json.decode(data, type=kind, strict=False)
        except msgspec.MsgspecError as error:
            raise self._schema_error(route, f"is invalid: {error}") from None
        return value

    def _check_slot(
        self, route: str, requested: int | str, data: dict[str, Any], path: tuple[str, ...]
    ) -> None:
        """Raise IntegrityError if the answer is for another slot than the *requested* one."""
        if not str(requested).isdigit():
            return
        value: Any = data
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if str(value) != str(requested):
            raise self._integrity_error(
                route,
                f"slot {requested} was requested, but the response is for slot {value}",
                "reorganization",
                hint="Repeat the request; request finalized slots only",
            )

    def _check_rewards(self, route: str, epoch: int, rewards: list[AttestationReward]) -> None:
        """Raise an error for a row that cannot be right."""
        previous = -1
        for row in rewards:
            problem = quirk = ""
            if row.validator_index == previous:
                problem = "has several rows"
            elif row.inactivity is None:
                problem, quirk = "has no inactivity penalty", "no-inactivity"
            elif row.inactivity > 0:
                problem = f"has a positive inactivity penalty, {row.inactivity} gwei"
                quirk = "positive-inactivity"
            elif max(abs(row.source), abs(row.target), abs(row.head)) > MAX_REWARD:
                problem = "has a reward above 1 ETH"
            if problem:
                raise self._integrity_error(
                    route, f"epoch {epoch}: validator {row.validator_index} {problem}", quirk
                )
            previous = row.validator_index

    def count_correction(self, quirk: str) -> None:
        """Count that a *quirk* of the client was repaired."""
        with self._lock:
            self.corrected[quirk] += 1

    def _schema_error(self, route: str, problem: str) -> SchemaError:
        return SchemaError(
            f"the response of {self._client()} {problem}",
            hint="Check that the address is that of a beacon node, and update the client",
            endpoint=route,
        )

    def _integrity_error(
        self, route: str, problem: str, quirk: str = "", hint: str | None = None
    ) -> IntegrityError:
        """Return the error for an impossible answer, with the known *quirk* that explains it."""
        message = f"{self._client()}: {problem}"
        if quirk:
            known = QUIRKS[quirk]
            message += f" (known of {known.client}: {quirk}, {known.evidence})"
        return IntegrityError(
            message,
            hint=hint or "Update the client; rewards can also be computed from SSZ states",
            endpoint=route,
        )

    def _client(self) -> str:
        return self.session.client_version or "the node"


def _lower_hex(data: bytes) -> bytes:
    """Return JSON whose texts are all hex or numbers, that of blocks for instance, in lower case.

    Roots and signatures are compared as texts.
    """
    return data.lower()


def _drop_null(fields: dict[str, Any]) -> dict[str, Any]:
    """Return JSON without the fields that are null: some clients write absent ones so."""
    return {
        name: _drop_null(value) if isinstance(value, dict) else value
        for name, value in fields.items()
        if value is not None
    }


def _find_missing(ids: Sequence[str], rows: list[ValidatorRow]) -> list[str]:
    """Return the *ids* without a row."""
    found = {text for row in rows for text in (str(row.index), row.validator.pubkey)}
    return [each for each in dict.fromkeys(ids) if each not in found]
