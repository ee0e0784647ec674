"""The loaders of the execution layer against the local explorer over a real socket.

What is expected is read from the dataset's own files with polars alone.
"""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import errors

COUNTS = [(1, 1), (100, 1), (101, 2), (1000, 10)]


def kept(chain, table):
    return chain.scan(table).collect()


def produced(chain, *conditions):
    """The execution blocks that meet any of the conditions, by number."""
    return (
        kept(chain, "execution_blocks").filter(pl.any_horizontal(conditions)).sort("block_number")
    )


def addresses_by_tokens(chain):
    """The addresses that hold tokens, those with most of them first."""
    held = kept(chain, "token_balances").group_by("address").len()
    return held.sort("len", "address", descending=[True, False])["address"].to_list()


@pytest.mark.parametrize(("count", "requests"), COUNTS)
def test_blocks_by_number(chain, explorer, count, requests):
    """A hundred a request, in any order; every cell is the dataset's."""
    blocks = kept(chain, "execution_blocks").sort("block_number")[:count]

    found = bf.load_execution_blocks(
        blocks["block_number"].sample(fraction=1, shuffle=True, seed=1)
    )

    assert requests == explorer.requests
    assert_frame_equal(blocks, found)
    assert {None} < set(found["relay_tag"]) or count == 1


def test_blocks_that_do_not_exist_are_named(chain, explorer):
    """Numbers after the last; strict makes it an error."""
    last = kept(chain, "execution_blocks")["block_number"].max()

    with pytest.warns(bf.MissingRows, match=f"block_number {last + 1}; block_number {last + 2}"):
        found = bf.load_execution_blocks([last, last + 1, last + 2])

    assert [last] == found["block_number"].to_list()
    with pytest.raises(bf.MissingRows, match=str(last + 1)):
        bf.load_execution_blocks([last + 1], strict=True)


def test_blocks_tell_of_the_consensus_layer(chain, explorer):
    """Slot, proposer and finality agree with the beacon block that carries the payload."""
    beacon = bf.load_epoch_slots(since=465, until=469).filter(status="proposed")

    found = bf.load_execution_blocks(beacon["exec_block_number"]).sort("slot")

    assert beacon["slot"].to_list() == found["slot"].to_list()
    assert beacon["proposer_index"].to_list() == found["proposer_index"].to_list()
    assert (beacon["epoch"] <= 467).to_list() == found["finalized"].to_list()
    assert {True, False} == set(found["finalized"])


@pytest.mark.parametrize("count", [1, 100, 101, 1000])
def test_the_blocks_of_validators(chain, explorer, count):
    """A hundred validators and a hundred blocks a request, and one page more where one is full."""
    expected = produced(chain, pl.col("proposer_index") < count)
    per_batch = expected.group_by(pl.col("proposer_index") // 100).len()["len"].to_list()
    batches = -(-count // 100)

    found = bf.load_produced_blocks(range(count))

    assert_frame_equal(expected, found)
    empty = batches - len(per_batch)
    assert sum(blocks // 100 + 1 for blocks in per_batch) + empty == explorer.requests


def test_the_blocks_of_addresses_and_of_their_validators(chain, explorer):
    """A block of both comes once: what an address got, a builder paid it, or a validator made."""
    blocks = kept(chain, "execution_blocks")
    builder = blocks.drop_nulls("relay_tag")["fee_recipient"][0]
    operator = blocks.drop_nulls("relay_tag")["relay_producer_fee_recipient"][0]
    key = kept(chain, "validators").filter(validator_index=5)["pubkey"][0]

    found = bf.load_produced_blocks([builder.upper().replace("X", "x"), 3, key, operator])

    asked = [builder, operator]
    expected = produced(
        chain,
        pl.col("fee_recipient").is_in(asked),
        pl.col("relay_producer_fee_recipient").is_in(asked),
        pl.col("proposer_index").is_in([3, 5]),
    )
    assert_frame_equal(expected, found)
    assert found.filter(pl.col("fee_recipient") == builder).height > 100


def test_what_addresses_hold(chain, explorer):
    """The ether first, then the tokens; at most 200 of them, by contract."""
    addresses = kept(chain, "address_balances")["address"].unique().sort()[:30]
    richest = addresses_by_tokens(chain)[0]
    asked = sorted({*addresses, richest})

    found = bf.load_address_balances(asked[::-1])

    assert len(asked) == explorer.requests
    every = kept(chain, "address_balances").filter(pl.col("address").is_in(asked))
    expected = every.sort("address", "token").group_by("address", maintain_order=True).head(201)
    assert_frame_equal(expected, found)
    assert 434 == every.filter(address=richest).height - 1
    assert 201 == found.filter(address=richest).height
    assert [None] * len(asked) == found.group_by("address", maintain_order=True).first()[
        "token"
    ].to_list()


@pytest.mark.parametrize("count", [1, 100, 101, pytest.param(1000, marks=pytest.mark.long)])
def test_one_request_an_address_and_one_a_name(chain, explorer, count):
    """However many there are; an address that was never seen holds nothing, and has no name."""
    known = kept(chain, "address_balances")["address"].unique().sort()
    asked = [*known, *(f"0x{number:040x}" for number in range(count))][:count]

    found = bf.load_address_balances(asked)
    names = bf.load_names(asked)

    assert 2 * count == explorer.requests
    assert sorted(asked) == found["address"].unique().sort().to_list()
    assert sorted(asked) == names["asked"].to_list()
    expected = kept(chain, "address_balances").filter(pl.col("address").is_in(asked))
    ether = found.filter(pl.col("token").is_null())
    assert expected.filter(pl.col("token").is_null()).height <= ether.height == count


def test_one_token_of_an_address(chain, explorer):
    """The ether and the one token; none beyond the first 200, and none of nobody."""
    richest = addresses_by_tokens(chain)[0]
    tokens = kept(chain, "token_balances").filter(address=richest).sort("token")["token"]

    near = bf.load_address_balances(richest, tokens[199][2:].upper())
    far = bf.load_address_balances(richest, tokens[200])
    nobody = bf.load_address_balances(f"0x{'99' * 20}", tokens[0])

    assert [None, tokens[199]] == near["token"].to_list()
    assert [None] == far["token"].to_list()
    assert [(f"0x{'99' * 20}", None, None, "0")] == nobody.rows()


def test_every_token_of_addresses(chain, explorer):
    """Two hundred a request: three for the longest list, one for the others."""
    asked = addresses_by_tokens(chain)[:5]

    found = bf.load_token_balances(asked)

    expected = kept(chain, "token_balances").filter(pl.col("address").is_in(asked))
    assert_frame_equal(expected.sort("address", "token"), found)
    assert 3 + 4 == explorer.requests


def test_pages_of_tokens_meet(chain, explorer):
    """An address with exactly 200 or 400 tokens costs an empty page more, and loses none."""
    found = bf.load_token_balances(addresses_by_tokens(chain)[0])

    assert found["token"].is_unique().all()
    assert 434 == found.height
    assert 3 == explorer.requests


def test_names_in_either_direction(chain, explorer):
    """One request each; the answer's primary name may be another than the one asked for."""
    names = kept(chain, "names").sort("asked")
    nameless = f"0x{'99' * 20}"

    found = bf.load_names([*names["asked"], nameless, names["asked"][0]])

    assert names.height + 1 == explorer.requests
    assert_frame_equal(names, found.filter(pl.col("asked") != nameless))
    assert [(nameless, nameless, "")] == found.filter(asked=nameless).rows()
    other = found.filter(pl.col("asked").str.ends_with(".eth"), pl.col("asked") != pl.col("domain"))
    assert other.height > 0


def test_a_name_that_nobody_has(explorer):
    """It is named as missing, and the others come."""
    with pytest.warns(bf.MissingRows, match="asked sim-nobody.eth"):
        found = bf.load_names(["sim-nobody.eth", "sim-0000.eth"])

    assert ["sim-0000.eth"] == found["asked"].to_list()


@pytest.mark.parametrize(
    ("load", "table"),
    [(bf.load_gas_fees, "gas_fees"), (bf.load_pool_stats, "pool_stats")],
)
def test_a_reading_is_one_row(chain, explorer, load, table):
    """One request, one row, to the last digit."""
    found = load()

    assert 1 == explorer.requests
    assert_frame_equal(kept(chain, table), found)


def test_the_pool_is_no_ether_where_it_is_none(explorer):
    """to_eth leaves amounts of other tokens alone."""
    stats = bf.load_pool_stats()

    converted = bf.to_eth(stats)

    assert [name for name in stats.columns if name.endswith("_base_units")] == [
        name for name in converted.columns if name.endswith("_base_units")
    ]
    assert not [name for name in converted.columns if name.endswith("_wei")]


def test_a_chart_of_the_local_explorer(explorer):
    """A picture for a known name; one that it does not draw is refused by it."""
    assert (800, 400) == bf.load_chart("validators").size
    with pytest.raises(errors.BadRequest, match="no data available"):
        bf.load_chart("graffiti_wordcloud")
    assert 2 == explorer.requests
