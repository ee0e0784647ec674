"""Every way to name validators of the simulated chain, and the indices that each selects."""

from __future__ import annotations

import polars as pl

import beaconframes as bf


def find_rare(names):
    """Return the first value that occurs a few times."""
    counts = names.value_counts().filter(pl.col("count").is_between(3, 60))
    return counts[names.name].sort()[0]


def list_validator_sets(chain):
    """Return each way to name validators, with the indices that it selects."""
    validators = chain.scan("validators").collect()
    origin = chain.scan("deposit_origin").collect()
    address = find_rare(origin["from_address"])
    with_address = validators.filter(pl.col("withdrawal_credentials").str.starts_with("0x01"))
    credential = find_rare(with_address["withdrawal_credentials"])
    keys = validators["pubkey"]

    def find_indices(column, value):
        return validators.filter(pl.col(column) == value)["validator_index"].to_list()

    return [
        ([3, keys[9], 3, keys[3]], [3, 9]),
        (bf.v2.validators(range(5)), [0, 1, 2, 3, 4]),
        (bf.v2.dashboard(2), list(range(100, 200))),
        (bf.v2.dashboard(2, group=1), list(range(101, 200, 4))),
        (bf.v2.withdrawal(credential), find_indices("withdrawal_credentials", credential)),
        (
            bf.v2.withdrawal(credential[-40:].upper()),
            sorted(
                find_indices("withdrawal_credentials", credential)
                + find_indices("withdrawal_credentials", f"0x02{credential[4:]}")
            ),
        ),
        (
            bf.v2.deposit_address(address),
            origin.filter(pl.col("from_address") == address)["validator_index"]
            .unique()
            .sort()
            .to_list(),
        ),
        (bf.v2.entity("Fyrlykt"), find_indices("name", "Fyrlykt")),
        (bf.v2.entity("fyrlykt"), []),
        (bf.v2.owner("Fyrlykt"), find_indices("name", "Fyrlykt")),
        (bf.v2.operator("Fyrlykt"), find_indices("name", "Fyrlykt")),
        (bf.v2.owner("Fyrlykt", operator="Fyrlykt"), find_indices("name", "Fyrlykt")),
    ]
