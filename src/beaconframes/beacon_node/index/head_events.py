"""Events of a node: new final epochs, and blocks that the chain may leave behind.

A node deletes an orphaned block soon after later blocks are final, so each block that seems to be
orphaned is requested immediately. Whether it is, is known when its epoch is final.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, Final

from beaconframes.beacon_node.client.slot_blocks import read_orphan
from beaconframes.errors import BeaconframesError, ServiceError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from beaconframes.beacon_node.client.api import BeaconApi
    from beaconframes.beacon_node.client.records import Event
    from beaconframes.beacon_node.client.slot_blocks import SlotBlock

log = logging.getLogger("beaconframes.index")

TOPICS: Final = ("head", "block", "chain_reorg", "finalized_checkpoint")
MAX_DELAY: Final = 384.0
"""Seconds until the next attempt to connect: an epoch of mainnet."""
MAX_DEPTH: Final = 64
"""Blocks of one reorganization that are requested."""


class HeadEvents:
    """Reads the event stream of a node in a thread, and connects again after errors."""

    def __init__(self, api: BeaconApi, *, on_finalized: Callable[[], None]) -> None:
        """Call *on_finalized* for each new finalized checkpoint."""
        self._api, self._on_finalized = api, on_finalized
        self._stop = threading.Event()
        self._slots: dict[str, int] = {}
        """The slot of each recent block, by root."""
        self._heads: set[str] = set()
        """Recent blocks that were the head."""
        self.wanted: dict[str, int] = {}
        """Blocks to request: they seem to be orphaned."""
        self.blocks: dict[str, SlotBlock] = {}
        """Blocks that seem to be orphaned, by root."""
        self._thread = threading.Thread(target=self._run, name="head-events", daemon=True)

    def __enter__(self) -> Self:
        """Connect."""
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """End the stream."""
        self._stop.set()
        self._thread.join()

    def request(self, slots: dict[str, int]) -> None:
        """Request blocks that seemed to be orphaned earlier: their *slots*, by root."""
        for root in slots.keys() - self.blocks.keys():
            self._request(root, slots[root])

    def forget(self, slot: int) -> None:
        """Forget the blocks before a *slot*."""
        for root, block in list(self.blocks.items()):
            if block.slot < slot:
                del self.blocks[root]
        for root, earlier in list(self.wanted.items()):
            if earlier < slot:
                self.wanted.pop(root, None)

    def _run(self) -> None:
        delay = 1.0
        while not self._stop.is_set():
            try:
                for event in self._api.events(TOPICS, stop=self._stop):
                    delay = 1.0
                    try:
                        self.handle(event)
                    except (LookupError, TypeError, ValueError) as error:
                        log.warning("an event %s is invalid: %r", event.topic, error)
            except BeaconframesError as error:
                if self._stop.is_set():
                    return
                if isinstance(error, ServiceError) and not error.retryable:
                    log.warning("orphaned blocks are not recorded: %s", error)
                    return
                log.info("%s; connecting to the event stream again in %d s", error, delay)
            self._stop.wait(delay)
            delay = min(2 * delay, MAX_DELAY)

    def handle(self, event: Event) -> None:
        """Note what an event says; of a block that seems to be orphaned, request it."""
        data = event.data
        if event.topic == "finalized_checkpoint":
            self._on_finalized()
        elif event.topic == "block":
            self._slots[str(data["block"])] = int(data["slot"])
        elif event.topic == "head":
            self._note_head(str(data["block"]), int(data["slot"]))
        elif event.topic == "chain_reorg":
            self._note_reorganization(data)
        for root, slot in list(self.wanted.items()):
            self._request(root, slot)

    def _note_head(self, root: str, slot: int) -> None:
        self._heads.add(root)
        self._slots[root] = slot
        # A block that was not the head until the next one came is probably not canonical.
        for other, earlier in self._slots.items():
            if earlier < slot and other not in self._heads and other not in self.blocks:
                self.wanted[other] = earlier
        limit = 4 * self._api.chain_spec.slots_per_epoch
        for other in [other for other, earlier in self._slots.items() if earlier < slot - limit]:
            del self._slots[other]
            self._heads.discard(other)
            self.wanted.pop(other, None)

    def _note_reorganization(self, data: dict[str, Any]) -> None:
        """Request the blocks of the old head that the new head does not have."""
        root = str(data["old_head_block"])
        for _ in range(min(int(data["depth"]), MAX_DEPTH)):
            block = self.blocks.get(root) or self._request(root, self._slots.get(root))
            if block is None or block.block is None:
                return
            root = block.block.message.parent_root

    def _request(self, root: str, slot: int | None) -> SlotBlock | None:
        """Request a block by its root; an error is logged, and the block requested again."""
        try:
            data = self._api.block(root)
            if data is None:
                self.wanted.pop(root, None)
                return None
            number = int(data["message"]["slot"]) if slot is None else slot
            block = read_orphan(self._api.chain_spec, root, data, slot=number)
        except BeaconframesError as error:
            log.info("block %s: %s", root, error)
            if slot is not None:
                self.wanted[root] = slot
            return None
        self.wanted.pop(root, None)
        self.blocks[root] = block
        return block
