"""The loaders of the execution layer against the local explorer over a real socket.

What is expected is read from the dataset's own files with polars alone.
"""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import errors

COUNTS = [(1, 1), (100, 1), (101, 2), (201, 3)]


def dataset_rows(chain, table):
    return chain.scan(table).collect()


def produced(chain, *conditions):
    """Return the execution blocks that meet any of the conditions, by number."""
    return (
        dataset_rows(chain, "execution_blocks")
        .filter(pl.any_horizontal(conditions))
        .sort("block_number")
    )


def addresses_by_tokens(chain):
    """Return the addresses with tokens, those with most tokens first."""
    held = dataset_rows(chain, "token_balances").group_by("address").len()
    return held.sort("len", "address", descending=[True, False])["address"].to_list()


@pytest.mark.parametrize(("count", "requests"), COUNTS)
def test_blocks_by_number(chain, explorer, count, requests):
    """A hundred per request, in any order; every cell equals the dataset."""
    blocks = dataset_rows(chain, "execution_blocks").sort("block_number")[:count]

    found = bf.load_execution_blocks(
        blocks["block_number"].sample(fraction=1, shuffle=True, seed=1)
    )

    assert requests == explorer.requests
    assert_frame_equal(blocks, found)
    assert {None} < set(found["relay_tag"]) or count == 1


def test_blocks_that_do_not_exist_are_listed(chain, explorer):
    """Numbers after the last block are missing; strict raises."""
    last = dataset_rows(chain, "execution_blocks")["block_number"].max()

    with pytest.warns(bf.MissingRows, match=f"block_number {last + 1}; block_number {last + 2}"):
        found = bf.load_execution_blocks([last, last + 1, last + 2])

    assert [last] == found["block_number"].to_list()
    with pytest.raises(bf.MissingRows, match=str(last + 1)):
        bf.load_execution_blocks([last + 1], strict=True)


def test_blocks_have_consensus_columns(chain, explorer):
    """Slot, proposer and finality agree with the beacon block that carries the payload."""
    beacon = bf.load_epoch_slots(since=465, until=469).filter(status="proposed")

    found = bf.load_execution_blocks(beacon["exec_block_number"]).sort("slot")

    assert beacon["slot"].to_list() == found["slot"].to_list()
    assert beacon["proposer_index"].to_list() == found["proposer_index"].to_list()
    assert (beacon["epoch"] <= 467).to_list() == found["finalized"].to_list()
    assert {True, False} == set(found["finalized"])


@pytest.mark.parametrize("count", [1, 100, 101, pytest.param(1000, marks=pytest.mark.more)])
def test_the_blocks_of_validators(chain, explorer, count):
    """A hundred validators and a hundred blocks per request; a full page needs one more request."""
    expected = produced(chain, pl.col("proposer_index") < count)
    per_batch = expected.group_by(pl.col("proposer_index") // 100).len()["len"].to_list()
    batches = -(-count // 100)

    found = bf.load_produced_blocks(range(count))

    assert_frame_equal(expected, found)
    empty = batches - len(per_batch)
    assert sum(blocks // 100 + 1 for blocks in per_batch) + empty == explorer.requests


@pytest.mark.more
def test_the_blocks_of_addresses_and_of_their_validators(chain, explorer):
    """A block that matches an address and a validator has one row."""
    blocks = dataset_rows(chain, "execution_blocks")
    builder = blocks.drop_nulls("relay_tag")["fee_recipient"][0]
    operator = blocks.drop_nulls("relay_tag")["relay_producer_fee_recipient"][0]
    key = dataset_rows(chain, "validators").filter(validator_index=5)["pubkey"][0]

    found = bf.load_produced_blocks([builder.upper().replace("X", "x"), 3, key, operator])

    requested = [builder, operator]
    expected = produced(
        chain,
        pl.col("fee_recipient").is_in(requested),
        pl.col("relay_producer_fee_recipient").is_in(requested),
        pl.col("proposer_index").is_in([3, 5]),
    )
    assert_frame_equal(expected, found)
    assert found.filter(pl.col("fee_recipient") == builder).height > 100


@pytest.mark.more
def test_balances_of_addresses(chain, explorer):
    """Ether first, then at most 200 tokens, sorted by contract."""
    addresses = dataset_rows(chain, "address_balances")["address"].unique().sort()[:30]
    richest = addresses_by_tokens(chain)[0]
    requested = sorted({*addresses, richest})

    found = bf.load_address_balances(requested[::-1])

    assert len(requested) == explorer.requests
    every = dataset_rows(chain, "address_balances").filter(pl.col("address").is_in(requested))
    expected = every.sort("address", "token").group_by("address", maintain_order=True).head(201)
    assert_frame_equal(expected, found)
    assert 434 == every.filter(address=richest).height - 1
    assert 201 == found.filter(address=richest).height
    assert [None] * len(requested) == found.group_by("address", maintain_order=True).first()[
        "token"
    ].to_list()


@pytest.mark.parametrize(
    "count",
    [1, 11, pytest.param(101, marks=pytest.mark.more), pytest.param(1000, marks=pytest.mark.long)],
)
def test_one_request_per_address_and_per_name(chain, explorer, count):
    """One request per address and per name; an unknown address has no balance and no name."""
    known = dataset_rows(chain, "address_balances")["address"].unique().sort()
    requested = [*known, *(f"0x{number:040x}" for number in range(count))][:count]

    found = bf.load_address_balances(requested)
    names = bf.load_names(requested)

    assert 2 * count == explorer.requests
    assert sorted(requested) == found["address"].unique().sort().to_list()
    assert sorted(requested) == names["requested"].to_list()
    expected = dataset_rows(chain, "address_balances").filter(pl.col("address").is_in(requested))
    ether = found.filter(pl.col("token").is_null())
    assert expected.filter(pl.col("token").is_null()).height <= ether.height == count


def test_one_token_of_an_address(chain, explorer):
    """The ether and one token; a token beyond the first 200 is not returned."""
    richest = addresses_by_tokens(chain)[0]
    tokens = dataset_rows(chain, "token_balances").filter(address=richest).sort("token")["token"]

    near = bf.load_address_balances(richest, tokens[199][2:].upper())
    far = bf.load_address_balances(richest, tokens[200])
    unknown = bf.load_address_balances(f"0x{'99' * 20}", tokens[0])

    assert [None, tokens[199]] == near["token"].to_list()
    assert [None] == far["token"].to_list()
    assert [(f"0x{'99' * 20}", None, None, 0, None, None)] == unknown.rows()


def test_all_tokens_of_addresses(chain, explorer):
    """Two hundred per request: three requests for the longest list, one for the others."""
    requested = addresses_by_tokens(chain)[:5]

    found = bf.load_token_balances(requested)

    expected = dataset_rows(chain, "token_balances").filter(pl.col("address").is_in(requested))
    assert_frame_equal(expected.sort("address", "token"), found)
    assert 3 + 4 == explorer.requests


def test_full_pages_of_tokens(chain, explorer):
    """An address with exactly 200 or 400 tokens takes one empty page more, and misses none."""
    found = bf.load_token_balances(addresses_by_tokens(chain)[0])

    assert found["token"].is_unique().all()
    assert 434 == found.height
    assert 3 == explorer.requests


def test_names_in_either_direction(chain, explorer):
    """One request each; the primary name may differ from the requested name."""
    names = dataset_rows(chain, "names").sort("requested")
    nameless = f"0x{'99' * 20}"

    found = bf.load_names([*names["requested"], nameless, names["requested"][0]])

    assert names.height + 1 == explorer.requests
    assert_frame_equal(names, found.filter(pl.col("requested") != nameless))
    assert [(nameless, nameless, "")] == found.filter(requested=nameless).rows()
    other = found.filter(
        pl.col("requested").str.ends_with(".eth"), pl.col("requested") != pl.col("domain")
    )
    assert other.height > 0


def test_an_unknown_name(explorer):
    """It is listed as missing; other names load."""
    with pytest.warns(bf.MissingRows, match="requested sim-nobody.eth"):
        found = bf.load_names(["sim-nobody.eth", "sim-0000.eth"])

    assert ["sim-0000.eth"] == found["requested"].to_list()


@pytest.mark.parametrize(
    ("load", "table"),
    [(bf.load_gas_fees, "gas_fees"), (bf.load_pool_stats, "pool_stats")],
)
def test_a_snapshot_is_one_row(chain, explorer, load, table):
    """One request returns one exact row."""
    found = load()

    assert 1 == explorer.requests
    assert_frame_equal(dataset_rows(chain, table), found)


def test_amounts_of_other_tokens_are_not_ether(explorer):
    """to_eth does not convert amounts of other tokens."""
    stats = bf.load_pool_stats()

    converted = bf.to_eth(stats)

    assert [name for name in stats.columns if name.endswith("_base_units")] == [
        name for name in converted.columns if name.endswith("_base_units")
    ]
    assert not [name for name in converted.columns if name.endswith("_wei")]


def test_a_chart_of_the_local_explorer(explorer):
    """A known name returns an image; the service refuses one that it cannot draw."""
    assert (800, 400) == bf.load_chart("validators").size
    with pytest.raises(errors.BadRequest, match="no data available"):
        bf.load_chart("graffiti_wordcloud")
    assert 2 == explorer.requests
