"""Tables that follow from other tables: daily statistics, rankings, luck, the yield index.

A dataset of a chain, whether simulated or indexed from a node, has the tables that its source
states: blocks, balances, income, duties. The tables here follow from them, without a seed and
without a request::

    with dataset.writing() as writer:
        ...  # blocks, balance_history, income_history and so on
    data = ChainTables(dataset, chain, head, Coverage(epochs=[(0, 1574)]))
    with dataset.writing() as writer:
        for table, rows in derive_tables(data):
            writer.add(table.table_name, rows)

``ChainTables`` reads from anything with `Dataset.scan` and `Dataset.tables`. `Coverage` states
which epochs and validators are complete, for all tables or for each: `Dataset.coverage` has the
same intervals. The head is that of the dataset. A day is over when the epoch after it is final.

What is not covered is never guessed. A day or an epoch with missing balances has no row. A column
that follows from another table is null where that table does not cover it. A sum over a window is
null for validators that were active in an epoch that is not covered. Ranks, epochs, luck and the
yield index need all validators. `find_obstacles` names the tables that cannot be derived at all,
with the reason.

- ``epochs``: from ``balance_history``, ``blocks`` and ``validators``; participation from
  ``income_history``.
- ``validator_stats``: from ``balance_history`` and ``validators``; the other columns from
  ``attestations``, ``blocks``, ``sync_committees``, deposits and withdrawals.
- ``yield_index``: from ``balance_history``, ``validators``, deposits, withdrawals and the fees in
  ``income_history``.
- ``performance`` and ``leaderboard``: from ``income_history`` and ``validators``, with the days of
  ``validator_stats``.
- ``execution_performance``: from ``execution_blocks`` and ``validators``.
- ``attestation_efficiency``: from the ``attestations`` of the last hundred epochs.
- ``proposal_luck``: from ``validators`` and ``blocks``.
- ``validator_withdrawals``: from ``slot_withdrawals`` and ``blocks``.
- ``withdrawal_credentials``: from ``validators``.

Deposits are those of ``deposit_events``, one row per deposit, in the slot in which it moved a
balance; without that table those of ``slot_deposits``, if there are no deposit requests (before
Electra). Withdrawals are those of ``withdrawal_events``, ``validator_withdrawals`` or
``slot_withdrawals``. ``transfer_events`` have signed amounts that are neither: consolidations, and
balances that became deposits in the queue. These events have the columns `balance_moves.AMOUNTS`;
an amount that moves at the end of an epoch has the last slot of that epoch.
``missed_attestation_events`` (validator and epoch) may replace old ``attestations``.

Final rows of ``epochs``, ``validator_stats`` and ``yield_index`` change only when the coverage of
their epochs grows, so the arguments *epochs* and *days* of `derive_tables` add those of a growing
dataset. The other tables describe the head: replace them.
"""

from beaconframes.derive.chain_tables import ChainTables, Coverage, Tables, fit_table
from beaconframes.derive.derivations import derive_tables, find_obstacles

__all__ = ["ChainTables", "Coverage", "Tables", "derive_tables", "find_obstacles", "fit_table"]
