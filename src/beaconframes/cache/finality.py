"""Finality: up to where rows are kept, which nobody will ask for again.

One answer that is wrong must not make rows final, and replicas of a service do not always agree. So
what is younger than a day counts as final only when two answers say so: the second is one more
request, for calls that reach so far. What is older was finalized long ago, unless finality has
stalled, and then the lower word of the one answer counts.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from beaconframes.endpoint import Envelope

if TYPE_CHECKING:
    from beaconframes.cache.read_through import ReadThrough

YOUNG = timedelta(days=1)


def knows_final(kept: ReadThrough, last: int) -> bool:
    """Tell whether the unit *last* is known to be final without asking."""
    known = kept.local_store.finalized
    return known >= 0 and kept.keeping.final_until(kept.chain_head, known) >= last


def told(kept: ReadThrough, last: int) -> int:
    """Return the last epoch that is called final, asking if the unit *last* may lie beyond."""
    known = kept.local_store.finalized
    if knows_final(kept, last):
        return known
    found = kept.chain_head.latest("epoch", finalized=True)
    if kept.endpoint.envelope is not Envelope.V2:
        # At first, epoch 0 counts as final and is yet running.
        found = min(found, kept.chain_head.latest("epoch") - 1)
    return max(known, found)


def is_doubtful(kept: ReadThrough, last: int, called: int | None = None) -> bool:
    """Tell whether some of the units up to *last* are final by one answer alone.

    That answer said that the epoch *called* is the last final one; None where it is still to come.
    """
    chain_head, until = kept.chain_head, kept.keeping.final_until
    sure = until(chain_head, vouched(kept))
    return last > sure and (called is None or until(chain_head, called) > sure)


def vouched(kept: ReadThrough) -> int:
    """Return the last epoch that needs no second answer any more."""
    chain_head = kept.chain_head
    before = chain_head.now() - YOUNG
    old = chain_head.chain.at("epoch", before) if before >= chain_head.chain.genesis else -1
    return max(kept.local_store.finalized, kept.explorer.agreed(kept.endpoint), old)


def finalized(kept: ReadThrough, last: int) -> int:
    """Return the last epoch whose rows may be kept, when up to the unit *last* is wanted."""
    called = told(kept, last)
    if is_doubtful(kept, last, called):
        kept.explorer.agreed(kept.endpoint, ask=True)
    return min(called, vouched(kept))
