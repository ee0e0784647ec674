"""The simulator: a whole chain, coherent to the gwei, from a seed.

``simulate`` runs the validators of a chain epoch by epoch (``engine``), by the formulas of the
consensus specification (``rewards``) and constants that are written into the dataset (``preset``).
Every table follows from that one run: balances move by exactly the income, deposits and
withdrawals; the bits of a block's sync aggregate are what its committee was paid for; the wall is
what the blocks' graffiti paint; the yield index is summed up from the validators' days. What is not
the chain itself follows from its rows when they are written (``derived``).

What is simpler than in reality, on purpose:

- What an epoch earns is settled at its end, attestations included: the state at the first slot of
  the next epoch has it. (On mainnet attestations are settled an epoch later.)
- Deposits take effect at the end of their epoch; exits are not held back by a queue.
- Finality always comes after two epochs, so there is no inactivity leak.
- Sync committees are drawn from validators that will not exit before their period ends.
- A slot's block is orphaned either as its only block, or as the twin in a double proposal, for
  which its proposer is slashed. Orphaned blocks never paint.
- The first validators, an eighth of all, never leave: a first look at low indices meets no gaps.
- Who sends a deposit waits for some slots only. One whose signature is not valid for a new key is
  dropped before any block includes it.
- Items of blocks are those of canonical blocks: an orphaned twin counts them, but has none.
- Income of the last year or of all time is that of the epochs simulated in detail.
- Priority fees grow with the stake, like rewards do, so that the yield of a small chain is not
  absurd: about 3 % from consensus and 0.5 % from fees.
"""

from beaconframes.simulator.run import simulate
from beaconframes.simulator.simulation_store import (
    SAMPLE,
    fingerprint,
    has_sample,
    open_or_simulate,
    open_sample,
    sample_path,
)

__all__ = [
    "SAMPLE",
    "fingerprint",
    "has_sample",
    "open_or_simulate",
    "open_sample",
    "sample_path",
    "simulate",
]
