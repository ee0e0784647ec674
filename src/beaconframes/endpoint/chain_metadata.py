"""The chain of a dataset and its head, as stated in the metadata of the dataset."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from beaconframes.calendar import Chain
from beaconframes.endpoint.chain_head import Head
from beaconframes.errors import ConfigError, DatasetError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping


CHAIN_HEADER = "x-beaconframes-chain"
"""The header of each response in which a local explorer states its chain, as a JSON object."""

WINDOWS_HEADER = "x-beaconframes-windows"
"""The header in which a local explorer states whether it refuses old units.

Its value is ``service`` if it does, as the public service, and ``none`` if it does not.
"""

HEAD_HEADER = "x-beaconframes-head"
"""The header in which a local explorer states its head if it has no table of the latest state."""

STATED_HEADERS = (CHAIN_HEADER, WINDOWS_HEADER, HEAD_HEADER)
"""The headers in which a local explorer describes itself."""


def encode_head(head: Head) -> str:
    """Return the value of the header that states *head*."""
    return f"{head.epoch} {head.finalized_epoch} {head.slot}"


def parse_head(header: str) -> Head | None:
    """Return the head that a header states; None for an invalid header."""
    numbers = header.split(" ")
    if len(numbers) != 3 or not all(text.isdecimal() and len(text) < 19 for text in numbers):
        return None
    epoch, finalized, slot = map(int, numbers)
    return Head(epoch, finalized, slot) if finalized <= epoch else None


def describe_chain(chain: Chain) -> dict[str, Any]:
    """Return *chain* as the metadata of a dataset, and as a local explorer states it."""
    return {**asdict(chain), "genesis": chain.genesis.isoformat()}


def parse_chain(described: Mapping[str, Any]) -> Chain:
    """Return the chain that `describe_chain` has *described*; raise an error for any other one."""
    return Chain(**{**described, "genesis": datetime.fromisoformat(described["genesis"])})


def encode_chain_header(chain: Chain) -> str:
    """Return the value of the header that states *chain*."""
    return json.dumps(describe_chain(chain), separators=(",", ":"))


def parse_chain_header(text: str) -> Chain:
    """Return the chain that the header of a response states, or raise ProtocolError."""
    try:
        return parse_chain(json.loads(text))
    except (TypeError, ValueError, KeyError, ConfigError, RecursionError) as error:
        raise ProtocolError(
            f"the header {CHAIN_HEADER} does not describe a chain ({error})",
            hint="Give the chain: bf.connect(url, chain=...)",
        ) from None


@dataclass(frozen=True)
class ChainMetadata:
    """The chain of a dataset and its head."""

    chain: Chain
    head: Head

    @classmethod
    def parse(cls, meta: Mapping[str, Any]) -> ChainMetadata:
        """Return the chain and the head from the metadata of a dataset.

        Raises
        ------
        DatasetError
            The metadata do not have them.
        """
        try:
            chain = parse_chain(meta["chain"])
            head = Head(meta["latest_epoch"], meta["finalized_epoch"], meta["latest_slot"])
        except (KeyError, TypeError, ValueError):
            raise DatasetError(
                "the dataset does not state its chain and its head, as exports of frames do not",
                hint="Read its files with polars or another library, or export a loader: "
                "bf.export(bf.load_income_history, folder)",
            ) from None
        return cls(chain, head)
