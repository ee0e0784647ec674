"""The probe of a node: finds client, head and oldest states with few requests."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from beaconframes.beacon_node.capabilities import Capabilities
from beaconframes.beacon_node.chain.reader import MANY_VALIDATORS
from beaconframes.beacon_node.client.api import SSZ_HEAD
from beaconframes.beacon_node.client.block_checks import parse_block
from beaconframes.consensus.spec import FORKS, is_since
from beaconframes.errors import (
    BeaconframesError,
    ConnectionFailed,
    NotFound,
    NotServed,
    RateLimited,
    RequestTimeout,
    ResponseError,
    ServerError,
    Unauthorized,
)
from beaconframes.load_context import LOAD

if TYPE_CHECKING:
    from collections.abc import Callable

    from beaconframes.beacon_node.client.api import BeaconApi
    from beaconframes.beacon_node.execution.api import ExecutionApi


def probe(api: BeaconApi, execution: ExecutionApi | None = None) -> Capabilities:
    """Return what the node of *api* can answer, and the *execution* node beside it.

    About 25 requests, none with a large response. Raises if there is no connection.
    """
    return _Probe(api).run(execution)


class _Probe:
    def __init__(self, api: BeaconApi) -> None:
        self.api = api
        self.oldest: dict[str, int] = {}
        self.reasons: dict[str, str] = {}
        self.has_holes = False
        self._proposers: dict[int, int | None] = {}

    def run(self, execution: ExecutionApi | None) -> Capabilities:
        api = self.api
        version = api.version()
        spec = self.spec = api.chain_spec
        head, finalized = api.read_head()
        self._check_genesis()
        self.first = spec.fork_epochs.get("altair", 0)
        # The newest epoch whose last state is final.
        self.newest = finalized - 1
        if self.newest <= self.first:
            waits = f"epoch {finalized} is finalized: wait until later epochs are"
            self.reasons = dict.fromkeys(("blocks", "states", "ssz"), waits)
        else:
            self._probe_history()
        execution_version = self._probe_execution(execution)
        has_many = api.request_has_validator(MANY_VALIDATORS)
        return Capabilities(
            url=api.url,
            client_version=version,
            chain=spec.name,
            head_slot=head,
            head_epoch=spec.epoch_of(head),
            finalized_epoch=finalized,
            first_epoch=self.first,
            sync_state=self._read_sync_state(),
            execution_version=execution_version,
            oldest=self.oldest,
            reasons=self.reasons,
            has_holes=self.has_holes,
            corrected=dict(api.corrected),
            has_many_validators=has_many,
        )

    def _check_genesis(self) -> None:
        """Raise ResponseError if the block of the head has another time than its slot."""
        block = self.api.block("head")
        slot = int(block["message"]["slot"]) if block else 0
        if block and self.spec.fork_at(self.spec.epoch_of(slot)) in FORKS:
            parse_block(self.spec, slot, block)

    def _probe_history(self) -> None:
        api, newest = self.api, self.newest
        self._find("blocks", self._has_block, self.first)
        self._find("states", self._at_state(lambda slot: api.validators(slot, [0])), self.first)
        # Between the oldest state and now, other routes of old states may end earlier.
        oldest = self.oldest.get("states", self.first)
        self._find("ssz", self._at_state(partial(api.state, first_bytes=SSZ_HEAD.itemsize)), oldest)
        self._find(
            "duties",
            self._at_state(lambda slot: api.committees(slot, self.spec.epoch_of(slot))),
            oldest,
        )
        if self.first == 0 and not is_since(self.spec.fork_at(newest), "electra"):
            # Since Electra, blocks do not show which of their requests move a balance.
            self.oldest["genesis"] = 0
        self._find("proposers", self._attempt(api.proposer_duties), oldest)
        # The rewards of an epoch need the state at the end of the next one.
        self._find("attestation_rewards", self._attempt(self._reward_attester), oldest, newest - 1)
        oldest = self.oldest.get("attestation_rewards", oldest)
        for name, request in (
            ("block_rewards", api.block_rewards), ("sync_rewards", api.sync_rewards),
        ):  # fmt: skip
            if reason := self._at_block(request)(newest):
                self.reasons[name] = reason
            else:
                self.oldest[name] = oldest
        queue = api.pending_deposits
        has_queues = is_since(self.spec.fork_at(newest), "electra")
        if has_queues and (reason := self._at_state(queue)(newest)):
            self.reasons["pending"] = reason
        else:
            self.oldest["pending"] = self.first

    def _find(
        self,
        name: str,
        check: Callable[[int], str],
        first: int,
        newest: int | None = None,
    ) -> None:
        """Find the first epoch since which *check* returns no reason against it."""
        newest = self.newest if newest is None else newest
        if reason := check(newest):
            self.reasons[name] = reason
            return
        oldest = first
        if first < newest and (reason := check(first)):
            self.reasons[name] = reason
            oldest = _bisect(lambda epoch: not check(epoch), first, newest)
        elif name == "states" and (reason := check(middle := (first + newest) // 2 | 1)):
            # Some clients have states at intervals only, of epochs that are multiples.
            self.has_holes = True
            self.reasons[name] = reason
            oldest = _bisect(lambda epoch: not check(epoch), middle, newest)
        self.oldest[name] = oldest

    def _attempt(self, request: Callable[[int], object]) -> Callable[[int], str]:
        """Return a check of an epoch that sends *request*."""

        def check(epoch: int) -> str:
            try:
                # One damaged answer would hide what the node has.
                with suppress(ResponseError):
                    request(epoch)
                    return ""
                request(epoch)
            except (ConnectionFailed, RateLimited):
                raise
            except NotServed as error:
                return f"{error.message}. {error.hint}"
            except RequestTimeout as error:
                limits = LOAD.get().timeouts
                if limits and limits.ends_at <= self.api.session.rate_limiter.clock.now():
                    raise
                return error.message
            except BeaconframesError as error:
                return error.message
            return ""

        return check

    def _at_state(self, request: Callable[[int], object]) -> Callable[[int], str]:
        """Return a check that sends *request* with the last slot of an epoch.

        If the client has no states of skipped slots, with the last slot that has a block.
        """

        def send(epoch: int) -> None:
            last = self.spec.first_slot_of(epoch + 1) - 1
            try:
                request(last)
            except (NotFound, ServerError):
                slot = self._find_last_block(epoch)
                if slot is None or slot == last:
                    raise
                request(slot)
                self.api.count_correction("skipped-slot-state")

        return self._attempt(send)

    def _at_block(self, request: Callable[[int], object]) -> Callable[[int], str]:
        def send(epoch: int) -> None:
            if (slot := self._find_last_block(epoch)) is not None:
                request(slot)

        return self._attempt(send)

    def _has_block(self, epoch: int) -> str:
        """Return why an epoch seems to have no blocks: of four slots, none has one."""
        step = max(1, self.spec.slots_per_epoch // 4)
        last = self.spec.first_slot_of(epoch + 1) - 1
        for slot in range(last, last - self.spec.slots_per_epoch, -step):
            if self._find_proposer(slot) is not None:
                return ""
        return f"no block of epoch {epoch}: the node did not download old blocks"

    def _reward_attester(self, epoch: int) -> None:
        slot = self._find_last_block(epoch)
        if slot is not None:
            proposer = self._find_proposer(slot)
            assert proposer is not None
            self.api.attestation_rewards(epoch, [proposer])

    def _find_last_block(self, epoch: int) -> int | None:
        first = self.spec.first_slot_of(epoch)
        slots = range(first + self.spec.slots_per_epoch - 1, first - 1, -1)
        return next((slot for slot in slots if self._find_proposer(slot) is not None), None)

    def _find_proposer(self, slot: int) -> int | None:
        if slot not in self._proposers:
            header = self.api.header(slot)
            message = None if header is None else header["header"]["message"]
            self._proposers[slot] = None if message is None else int(message["proposer_index"])
        return self._proposers[slot]

    def _read_sync_state(self) -> str:
        syncing: dict[str, Any] = {}
        if self._attempt(lambda _: syncing.update(self.api.syncing()))(self.newest):
            return "unknown"
        if syncing.get("is_syncing"):
            return f"synchronizing, {syncing.get('sync_distance')} slots behind"
        is_verified = not (syncing.get("is_optimistic") or syncing.get("el_offline"))
        return "synchronized" if is_verified else "not verified: its execution node is behind"

    def _probe_execution(self, execution: ExecutionApi | None) -> str:
        if execution is None:
            self.reasons["execution"] = "pass the address of an execution node as execution="
            return ""
        try:
            version = execution.version()
            execution.head_number()
        except (ConnectionFailed, RateLimited, Unauthorized):
            raise
        except BeaconframesError as error:
            self.reasons["execution"] = error.message
            return ""
        self.oldest["execution"] = self.first
        return version


def _bisect(is_usable: Callable[[int], bool], bad: int, good: int) -> int:
    """Return the first epoch after *bad* since which *is_usable* holds, up to *good*.

    A node that prunes has a few recent epochs, so the search goes back from *good* in steps that
    double.
    """
    step = 1
    while good - step > bad and is_usable(good - step):
        good -= step
        step *= 2
    bad = max(bad, good - step)
    while good - bad > 1:
        middle = (bad + good) // 2
        if is_usable(middle):
            good = middle
        else:
            bad = middle
    return good
