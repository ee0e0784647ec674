"""Deposits of validators."""

from __future__ import annotations

from dataclasses import dataclass

from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import Endpoint, ExpectedRows, Identifiers
from beaconframes.v1._deposits import Deposits


@dataclass(frozen=True)
class DepositValidators(Identifiers):
    """Validators by index or public key, for rows that contain the public key only."""

    def expected(self, batch: list[str]) -> tuple[ExpectedRows, ...]:
        """Return the keys of *batch*; none if it has an index, whose rows cannot be checked."""
        if all(item.startswith("0x") for item in batch):
            return (ExpectedRows({self.column.name: batch}, required=False),)
        return ()


DEPOSITS = Endpoint(
    "deposits",
    route="GET /api/v1/validator/{validators}/deposits",
    table=Deposits,
    parameters=(DepositValidators("validators", Deposits.pubkey),),
)


@loader(DEPOSITS)
def load_deposits(validators: Subjects) -> Values:
    """Load the deposits of validators, one row per event of the deposit contract, in gwei.

    100 validators per request. Top-ups have rows too, and so have deposits without effect, whose
    signature is not valid.

    Parameters
    ----------
    validators
        Indices or public keys: one, or a list, range or Series of them, mixed, of any length. A
        public key that never became a validator can have deposits too.

    Returns
    -------
    polars.DataFrame
        Sorted by ``block_number``, ``tx_index``, ``merkletree_index``. Validators are named by
        ``pubkey`` alone, as in the deposit contract. A validator without deposits has no rows, and
        is not reported as missing.

    Notes
    -----
    ``GET /api/v1/validator/{indexOrPubkey}/deposits``. Never final: more deposits are possible at
    any time. The response does not state how many there are, so a missing one is not detected.
    """
    return {"validators": validators}
