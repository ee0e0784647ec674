"""Hand-made blocks of a chain with 16 validators of 32 ETH and 8 slots an epoch."""

from __future__ import annotations

from beaconframes.consensus.spec import FORKS, Spec

ETH = 10**9
TOTAL = 16 * 32 * ETH


def build_spec(fork="capella"):
    """Return the constants of a chain that is in *fork* from genesis on."""
    return Spec(
        name="small",
        genesis_time=0,
        genesis_validators_root=bytes(32),
        fork_epochs=dict.fromkeys(FORKS[: FORKS.index(fork) + 1], 0),
        fork_versions={},
        slots_per_epoch=8,
    )


def build_block(slot=8, signed="0x00", **body):
    """Return a block of validator 0; by default none of 4 to 8 sync seats has signed."""
    lists = ("attestations", "proposer_slashings", "attester_slashings", "deposits")
    return {
        "slot": str(slot),
        "proposer_index": "0",
        "parent_root": f"0x{slot - 1:064x}",
        "body": dict.fromkeys(lists, ())
        | {"sync_aggregate": {"sync_committee_bits": signed}, "execution_payload": {}}
        | body,
    }
