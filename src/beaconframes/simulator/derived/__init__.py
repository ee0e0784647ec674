"""What follows from the chain: every table that is not the chain itself.

The engine writes the chain (blocks, balances, income, events). Everything here is worked out from
those rows when they are written, one module per idea, so that no table can disagree with another.
What no row says (prices, tokens, the pool's contracts) is made up from digests of the seed, and
named so that nobody takes it for real.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaconframes.simulator.derived import (
    accounts,
    deposits,
    duties,
    execution,
    ledgers,
    luck,
    pool,
    rankings,
    slashings,
    stats,
)

if TYPE_CHECKING:
    from beaconframes.simulator.derived.duties import Votes
    from beaconframes.simulator.derived.source import Source


def write(source: Source, votes: Votes) -> None:
    """Write all derived tables; those that follow from others come after them."""
    duties.write(source, votes)
    ledgers.write(source)
    deposits.write(source)
    slashings.write(source)
    produced = execution.write(source)
    days = stats.write(source)
    rankings.write(source, days, produced)
    luck.write(source)
    accounts.write(source, produced)
    pool.write(source)


__all__ = ["write"]
