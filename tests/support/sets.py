"""Every way to name validators of the simulated chain, and who they are."""

from __future__ import annotations

import polars as pl

import beaconframes as bf


def rather_rare(names):
    """The first of those that occur a few times."""
    counts = names.value_counts().filter(pl.col("count").is_between(3, 60))
    return counts[names.name].sort()[0]


def sets(chain):
    """Each way to name validators, with the indices that it stands for."""
    validators = chain.scan("validators").collect()
    origin = chain.scan("deposit_origin").collect()
    address = rather_rare(origin["from_address"])
    paid = validators.filter(pl.col("withdrawal_credentials").str.starts_with("0x01"))
    credential = rather_rare(paid["withdrawal_credentials"])
    keys = validators["pubkey"]

    def having(column, value):
        return validators.filter(pl.col(column) == value)["validator_index"].to_list()

    return [
        ([3, keys[9], 3, keys[3]], [3, 9]),
        (bf.v2.validators(range(5)), [0, 1, 2, 3, 4]),
        (bf.v2.dashboard(2), list(range(100, 200))),
        (bf.v2.dashboard(2, group=1), list(range(101, 200, 4))),
        (bf.v2.withdrawal(credential), having("withdrawal_credentials", credential)),
        (
            bf.v2.withdrawal(credential[-40:].upper()),
            sorted(
                having("withdrawal_credentials", credential)
                + having("withdrawal_credentials", f"0x02{credential[4:]}")
            ),
        ),
        (
            bf.v2.deposit_address(address),
            origin.filter(pl.col("from_address") == address)["validator_index"]
            .unique()
            .sort()
            .to_list(),
        ),
        (bf.v2.entity("Fyrlykt"), having("name", "Fyrlykt")),
        (bf.v2.entity("fyrlykt"), []),
        (bf.v2.owner("Fyrlykt"), having("name", "Fyrlykt")),
        (bf.v2.operator("Fyrlykt"), having("name", "Fyrlykt")),
        (bf.v2.owner("Fyrlykt", operator="Fyrlykt"), having("name", "Fyrlykt")),
    ]
