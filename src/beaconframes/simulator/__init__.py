"""The simulator: a whole chain from a seed, whose tables agree to the gwei.

``simulate`` runs a chain epoch by epoch (``engine``), by the formulas of the consensus
specification (``rewards``) and with constants that the dataset states (``preset``). All tables
follow from that run. Balances change by exactly the income, deposits and withdrawals; the balance
of an epoch is that after the block of its first slot, as nodes report it. The bits of
a block's sync aggregate match the rewards of its committee. The wall shows the pixels that the
graffiti of blocks paint. The yield index is the sum of the validators' days. All other tables are
derived from the rows of the chain (``derived``).

Deliberate simplifications:

- Attestation rewards of an epoch are processed at its end. (Mainnet processes them an epoch later.)
- Deposits take effect with their block, which is never that of the first slot of an epoch; there
  is no exit queue.
- Each epoch is final two epochs later, so there is no inactivity leak.
- Sync committees are drawn from validators that will not exit before their period ends.
- An orphaned block is either the only block of its slot, or the second block of a double proposal,
  for which its proposer is slashed. Orphaned blocks never paint.
- The first validators, an eighth of all, never exit: examples with low indices have no gaps.
- Blocks include a deposit some slots after its transaction. A deposit for a new key with an invalid
  signature is dropped before any block includes it.
- Withdrawal requests of any amount are paid 261 epochs later, by the first block of an epoch.
- The balance above 32 ETH of a validator that switches to compounding credentials becomes
  a deposit, which is processed in the same epoch. No validators are consolidated.
- Only canonical blocks have operations: the second block of a double proposal states their counts,
  but there are no rows for it.
- Income of the last year or of all time is that of the epochs simulated in detail.
- Priority fees grow with the stake, as rewards do, so that the yield of a small chain is plausible:
  about 3 % from consensus rewards and 0.5 % from fees.
"""

from beaconframes.simulator.simulation import simulate
from beaconframes.simulator.simulation_store import (
    SAMPLE,
    fingerprint,
    fingerprint_rows,
    open_or_simulate,
    open_sample,
    sample_arguments,
)

__all__ = [
    "SAMPLE",
    "fingerprint",
    "fingerprint_rows",
    "open_or_simulate",
    "open_sample",
    "sample_arguments",
    "simulate",
]
