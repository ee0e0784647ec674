"""The rows of the tables of a node, from blocks or amounts that a test has."""

from types import SimpleNamespace

from beaconframes.beacon_node.tables import BLOCK_TABLES, INDEXED_TABLES, REWARD_TABLES


def build_block_tables(spec, slots, votes=None):
    """Return the tables of *slots* by name; *votes* has the number for each block, by root."""
    data = SimpleNamespace(spec=spec, slots=slots, vote_counts=votes)
    return {name: INDEXED_TABLES[name].rows(data) for name in BLOCK_TABLES}


def build_execution_blocks(spec, epoch, payments):
    """Return the execution blocks of an *epoch*, from what they paid."""
    reader = SimpleNamespace(payments=lambda _: payments)
    data = SimpleNamespace(spec=spec, epoch=epoch, reader=reader)
    return INDEXED_TABLES["execution_blocks"].rows(data)


def build_reward_tables(amounts, chain):
    """Return the tables of the *amounts* of an epoch by name."""
    data = SimpleNamespace(
        amounts=amounts, spec=SimpleNamespace(chain=chain), validators=amounts.validators.tolist()
    )
    return {name: INDEXED_TABLES[name].rows(data) for name in REWARD_TABLES}
