"""The arguments of `index` and `follow`: nodes, epochs, tables and validators."""

from __future__ import annotations

import logging
import re
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from beaconframes.beacon_node.connection import ChainStatus, NodeConnection
from beaconframes.beacon_node.node import Node
from beaconframes.beacon_node.tables import DEPOSITS, INDEXED_TABLES, REWARD_TABLES
from beaconframes.derive.derivations import DERIVATIONS
from beaconframes.endpoint.identifiers import is_pubkey, normalize_validators
from beaconframes.errors import UsageError
from beaconframes.text import shorten
from beaconframes.time_range import is_relative, resolve_span

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from contextlib import ExitStack

    from beaconframes.time_range import Moment

log = logging.getLogger("beaconframes.index")


ALL_TABLES = "all"

PART = re.compile(r"([0-9]{1,4})/([0-9]{1,4})", re.ASCII)


NAMED_VALIDATORS = 3
"""Unknown validators that an error names."""


def open_connection(
    node: str | Node | NodeConnection, execution: str | None, stack: ExitStack
) -> NodeConnection:
    """Return the connection of a *node*, or a new one to its address, which *stack* closes.

    *execution* is the address of the execution node beside a node that is given by its address.
    """
    if isinstance(node, str):
        return stack.enter_context(closing(NodeConnection(node, execution)))
    if not isinstance(node, Node | NodeConnection):
        raise UsageError(
            f"{shorten(node)} is not a node",
            hint='Give its address, such as "http://localhost:5052", or a bf.node',
        )
    if execution is not None:
        raise UsageError(
            "execution= is given beside an open node", hint="Give it to bf.node instead"
        )
    return node.connection if isinstance(node, Node) else node


def open_connections(
    node: str | Node | NodeConnection | Sequence[str], execution: str | None, stack: ExitStack
) -> list[NodeConnection]:
    """Return the connections of one node, or of several addresses, all of the same chain."""
    if isinstance(node, str) or not isinstance(node, Sequence):
        return [open_connection(node, execution, stack)]
    if not node:
        raise UsageError("no node is given", hint='Give an address: "http://localhost:5052"')
    first, *others = [open_connection(address, execution, stack) for address in node]
    for other in others:
        if (other.spec.genesis_time, other.spec.genesis_validators_root) != (
            first.spec.genesis_time, first.spec.genesis_validators_root,
        ):  # fmt: skip
            raise UsageError(
                f"{other.url} is a node of another chain ({other.spec.name}) than {first.url} "
                f"({first.spec.name}): their genesis differs",
                hint="Give addresses of nodes of one chain",
            )
    return [first, *others]


def read_common_status(connections: Sequence[NodeConnection]) -> ChainStatus:
    """Request the heads of all nodes, and return what all of them have."""
    found = [connection.read_status() for connection in connections]
    return ChainStatus(
        min(status.head_slot for status in found), min(status.finalized_epoch for status in found)
    )


def has_deposits(connection: NodeConnection, tables: Collection[str] | None) -> bool:
    """Return whether to write the deposits that an execution node has."""
    names = [tables] if isinstance(tables, str) else tables
    is_requested = names in (None, [ALL_TABLES]) or not DEPOSITS.isdisjoint(names or ())
    return is_requested and "execution" in connection.capabilities.oldest


def find_epochs(
    connections: Sequence[NodeConnection],
    status: ChainStatus,
    since: Moment | None,
    until: Moment,
) -> range:
    """Return the epochs from *since* to *until*; without *since*, those whose income is there.

    Of older epochs, the nodes may have the blocks.
    """
    connection = max(connections, key=lambda each: each.first_epoch)
    chain = connection.chain
    last_final = status.settled_epoch
    first = connection.first_epoch
    if isinstance(until, str) and until == "finalized":
        if last_final < 0:
            raise UsageError(
                "the chain has no final epoch yet", hint="Try again when it has finalized epochs"
            )
        if since is None and last_final < first:
            raise UsageError(
                f"the node can answer epochs from {first} on, and the last final one is "
                f"{last_final}: {connection.capabilities.find_table('income_history').reason}",
                hint="Try again later: a node stores what follows its start",
            )
        until = last_final
    computable = (status.head_slot + 1) // chain.slots_per_epoch - 2
    span = resolve_span(
        first if since is None else since,
        until,
        unit="epoch",
        chain=chain,
        latest=lambda: max(last_final, 0),
        now=lambda: chain.time_of("slot", status.head_slot),
    )
    if span.last > computable:
        raise UsageError(
            f"epoch {span.last} cannot be indexed yet: the last complete one is {computable}",
            hint="Leave until out to index up to the last final epoch",
        )
    reason = connection.capabilities.find_table("income_history").reason
    if span.last < first:
        raise UsageError(
            f"the node can answer epochs from {first} on, and the last requested one is "
            f"{span.last}: {reason}",
            hint="bf.node loads what the node has of older epochs, such as blocks",
        )
    wanted = connection.capabilities.first_epoch if since is None else span.first
    if wanted < first:
        has = "are left out" if since is None else "have no income, only what blocks show"
        log.warning("epochs %d to %d %s: %s", wanted, first - 1, has, reason)
    return range(span.first, span.last + 1)


def choose_part(epochs: range, part: str, since: Moment | None, until: Moment) -> range:
    """Return a *part* of the *epochs* from *since* to *until*, such as ``"3/8"``."""
    found = PART.fullmatch(part)
    number, count = map(int, found.groups()) if found else (0, 0)
    if not 1 <= number <= count:
        raise UsageError(
            f"part={shorten(part)} is not a part", hint='Give part="3/8" for the third of eight'
        )
    if is_relative(since) or is_relative(until):
        raise UsageError(
            "a part needs since and until that are the same on each machine",
            hint="Give both as an epoch or a date",
        )
    if count > len(epochs):
        raise UsageError(
            f"{len(epochs):,} epochs cannot be divided into {count:,} parts", hint="Use fewer parts"
        )
    return epochs[len(epochs) * (number - 1) // count : len(epochs) * number // count]


def choose_tables(connection: NodeConnection, tables: Collection[str] | None) -> tuple[str, ...]:
    """Return the tables to write, in order; those of income are always among them."""
    derived = {derivation.table.table_name for derivation in DERIVATIONS}
    if tables is None or tables == ALL_TABLES:
        found = map(connection.capabilities.find_table, INDEXED_TABLES)
        return tuple(each.table for each in found if each.oldest_epoch is not None)
    if isinstance(tables, str):
        tables = (tables,)
    for name in tables:
        if name not in {*INDEXED_TABLES, *derived, *DEPOSITS}:
            raise UsageError(
                f"{shorten(name)} is not a table of an index",
                hint=f"Tables: {', '.join(sorted({*INDEXED_TABLES, *derived, *DEPOSITS}))}",
            )
        ability = connection.capabilities.find_table(name)
        if ability.oldest_epoch is None:
            raise UsageError(
                f"this node cannot answer {name}: {ability.reason}", hint="Leave the table out"
            )
    return tuple(name for name in INDEXED_TABLES if name in tables or name in REWARD_TABLES)


def resolve_validators(
    connection: NodeConnection, validators: int | str | Iterable[int | str] | None
) -> list[int] | None:
    """Return the indices of *validators*, which may be given by public key."""
    if validators is None:
        return None
    texts = normalize_validators(validators)
    if not texts:
        raise UsageError("no validators are given", hint="Leave validators out to index all")
    keys = [text for text in texts if is_pubkey(text)]
    indices = sorted(int(text) for text in texts if not is_pubkey(text))
    unknown: list[int | str] = []
    # Indices have no gaps: if the last one exists, all do.
    has_validator = connection.api.request_has_validator
    if indices and not has_validator(indices[-1]):
        unknown += indices[bisect_left(indices, True, key=lambda index: not has_validator(index)) :]
    rows = connection.api.validators("head", keys)
    found = {row.validator.pubkey.lower(): row.index for row in rows}
    unknown += [key for key in keys if key not in found]
    if unknown:
        named = ", ".join(map(str, unknown[:NAMED_VALIDATORS]))
        raise UsageError(
            f"the node does not know {len(unknown):,} of the validators: {named}"
            + (", ..." if len(unknown) > NAMED_VALIDATORS else ""),
            hint="Leave them out; a deposit has no validator while it is pending",
        )
    return sorted({*indices, *(found[key] for key in keys)})
