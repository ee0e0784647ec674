"""Nine tables and their wire fields, written by hand from the documentation of the API.

Nothing here is read from the package. A line has a column (``*`` in the key), its kind, and every
spelling of its wire field; without one, the field has the name of the column.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import polars as pl

GENESIS = datetime(2020, 12, 1, 12, 0, 23, tzinfo=UTC)
SECONDS = {"slot": 12, "epoch": 384, "day": 86_400, "current_slot": 12, "block_slot": 12}
CALENDAR = {"week", "week_start", "week_end"}

TEXT = """
validators
  validator_index*                int        validator_index validatorindex
  pubkey                          hex
  status                          text
  slashed                         flag
  balance_gwei                    int        balance
  effective_balance_gwei          int        effective_balance effectivebalance
  activation_eligibility_epoch    epoch      activation_eligibility_epoch activationeligibilityepoch
  activation_epoch                epoch      activation_epoch activationepoch
  exit_epoch                      epoch      exit_epoch exitepoch
  withdrawable_epoch              epoch      withdrawable_epoch withdrawableepoch
  last_attestation_slot           int-or-0   last_attestation_slot lastattestationslot
  withdrawal_credentials          hex        withdrawal_credentials withdrawalcredentials
  name                            text
  total_withdrawals_gwei          int        total_withdrawals

income_history
  validator_index*                int        validatorindex validator_index
  epoch*                          int
  time                            start-of-epoch
  attestation_head_reward_gwei    int=0      income.attestation_head_reward
  attestation_source_reward_gwei  int=0      income.attestation_source_reward
  attestation_source_penalty_gwei int=0      income.attestation_source_penalty
  attestation_target_reward_gwei  int=0      income.attestation_target_reward
  attestation_target_penalty_gwei int=0      income.attestation_target_penalty
  finality_delay_penalty_gwei     int=0      income.finality_delay_penalty
  proposer_attestation_inclusion_reward_gwei int=0 income.proposer_attestation_inclusion_reward
  proposer_slashing_inclusion_reward_gwei int=0 income.proposer_slashing_inclusion_reward
  proposer_sync_inclusion_reward_gwei int=0  income.proposer_sync_inclusion_reward
  sync_committee_reward_gwei      int=0      income.sync_committee_reward
  sync_committee_penalty_gwei     int=0      income.sync_committee_penalty
  slashing_reward_gwei            int=0      income.slashing_reward
  slashing_penalty_gwei           int=0      income.slashing_penalty
  proposals_missed                int=0      income.proposals_missed
  tx_fee_reward_wei               wei=0      income.tx_fee_reward_wei

balance_history
  validator_index*                int        validatorindex validator_index
  epoch*                          int
  time                            start-of-epoch
  balance_gwei                    int        balance
  effective_balance_gwei          int        effectivebalance effective_balance

latest_state
  current_slot*                   int        currentSlot
  time                            start-of-current_slot
  last_proposed_slot              int        lastProposedSlot
  current_epoch                   int        currentEpoch
  current_finalized_epoch         int        currentFinalizedEpoch
  finality_delay                  int        finalityDelay
  syncing                         flag
  ticker_currency                 text       rates.tickerCurrency
  ticker_currency_symbol          text       rates.tickerCurrencySymbol
  selected_currency               text       rates.selectedCurrency
  selected_currency_symbol        text       rates.selectedCurrencySymbol
  main_currency                   text       rates.mainCurrency
  main_currency_symbol            text       rates.mainCurrencySymbol
  main_currency_price             float      rates.mainCurrencyPrice
  main_currency_price_formatted   text       rates.mainCurrencyPriceFormatted
  main_currency_price_k_formatted text       rates.mainCurrencyKFormatted
  main_currency_ticker_price      float      rates.mainCurrencyTickerPrice
  main_currency_ticker_price_formatted text  rates.mainCurrencyTickerPriceFormatted
  main_currency_ticker_price_k_formatted text rates.mainCurrencyTickerPriceKFormatted
  el_currency                     text       rates.elCurrency
  el_currency_symbol              text       rates.elCurrencySymbol
  el_currency_price               float      rates.elCurrencyPrice
  el_currency_price_formatted     text       rates.elCurrencyPriceFormatted
  el_currency_price_k_formatted   text       rates.elCurrencyKFormatted
  cl_currency                     text       rates.clCurrency
  cl_currency_symbol              text       rates.clCurrencySymbol
  cl_currency_price               float      rates.clCurrencyPrice
  cl_currency_price_formatted     text       rates.clCurrencyPriceFormatted
  cl_currency_price_k_formatted   text       rates.clCurrencyKFormatted
  main_currency_ticker_prices     json       rates.mainCurrencyTickerPrices

epochs
  epoch*                          int
  time                            start-of-epoch ts
  finalized                       flag
  validators_count                int        validatorscount
  average_validator_balance_gwei  int        averagevalidatorbalance
  total_validator_balance_gwei    int        totalvalidatorbalance
  global_participation_rate       float      globalparticipationrate
  eligible_ether_gwei             int        eligibleether
  voted_ether_gwei                int        votedether
  blocks_count                    int        blockscount
  proposed_blocks                 int        proposedblocks
  missed_blocks                   int        missedblocks
  orphaned_blocks                 int        orphanedblocks
  scheduled_blocks                int        scheduledblocks
  attestations_count              int        attestationscount
  attester_slashings_count        int        attesterslashingscount
  proposer_slashings_count        int        proposerslashingscount
  deposits_count                  int        depositscount
  withdrawals_count               int        withdrawalcount
  voluntary_exits_count           int        voluntaryexitscount
  rewards_exported                flag

epoch_slots
  slot*                           int
  block_root*                     root       blockroot
  epoch                           int
  time                            start-of-slot
  status                          status
  proposer_index                  proposer   proposer
  parent_root                     hex        parentroot
  state_root                      hex        stateroot
  randao_reveal                   hex        randaoreveal
  signature                       hex
  graffiti                        hex
  graffiti_text                   text
  eth1_data_block_hash            hex        eth1data_blockhash
  eth1_data_deposit_root          hex        eth1data_depositroot
  eth1_data_deposit_count         int        eth1data_depositcount
  sync_aggregate_bits             hex        syncaggregate_bits
  sync_aggregate_signature        hex        syncaggregate_signature
  sync_aggregate_participation    float      syncaggregate_participation
  attestations_count              int        attestationscount
  attester_slashings_count        int        attesterslashingscount
  proposer_slashings_count        int        proposerslashingscount
  deposits_count                  int        depositscount
  withdrawals_count               int        withdrawalcount
  voluntary_exits_count           int        voluntaryexitscount
  exec_block_number               int
  exec_block_hash                 hex
  exec_parent_hash                hex
  exec_fee_recipient              hex
  exec_state_root                 hex
  exec_receipts_root              hex
  exec_logs_bloom                 hex
  exec_random                     hex
  exec_gas_limit                  int
  exec_gas_used                   int
  exec_time                       unix       exec_timestamp
  exec_base_fee_per_gas_wei       wei        exec_base_fee_per_gas
  exec_extra_data                 hex
  exec_transactions_count         int
  votes                           int

sync_committees
  period*                         int
  seat*                           seat
  validator_index                 int        validators[]
  start_epoch                     int
  end_epoch                       int

graffiti_wall
  slot*                           int
  x*                              int
  y*                              int
  time                            start-of-slot
  color                           text
  validator_index                 int        validator

yield_index
  day*                            int
  time                            start-of-day day_start
  day_end                         end-of-day day_end
  apr                             float
  apr_avg_7d                      float      avgapr7d
  apr_avg_31d                     float      avgapr31d
  cl_apr                          float
  cl_apr_avg_7d                   float      cl_avgapr7d
  cl_apr_avg_31d                  float      cl_avgapr31d
  el_apr                          float
  el_apr_avg_7d                   float      el_avgapr7d
  el_apr_avg_31d                  float      el_avgapr31d
  consensus_rewards_sum_wei       wei
  consensus_rewards_avg_7d_wei    wei        avgconsensus_rewards7d_wei
  consensus_rewards_avg_31d_wei   wei        avgconsensus_rewards31d_wei
  tx_fees_sum_wei                 wei
  tx_fees_avg_7d_wei              wei        avgtx_fees7d_wei
  tx_fees_avg_31d_wei             wei        avgtx_fees31d_wei
  deposits_sum_wei                wei
  effective_balances_sum_wei      wei
  start_balances_sum_wei          wei
  end_balances_sum_wei            wei
  total_rewards_wei               wei
"""

TIME = pl.Datetime("us", "UTC")
DTYPES = {
    "int": pl.Int64, "int-or-0": pl.Int64, "epoch": pl.Int64, "proposer": pl.Int64,
    "seat": pl.Int64, "wei": pl.Decimal(28, 0), "float": pl.Float64, "flag": pl.Boolean,
    "text": pl.String, "hex": pl.String, "root": pl.String, "status": pl.String,
    "json": pl.String, "unix": TIME, "duty": pl.String, "credentials": pl.String,
    "request": pl.String, "indices": pl.List(pl.Int64),
}  # fmt: skip
CELLS = {
    "int-or-0": lambda value: value or None,
    "epoch": lambda value: None if value > 9_200_000_000_000_000_000 else value,
    "proposer": lambda value: None if value == 2_147_483_647 else value,
    "wei": Decimal,
    "float": float,
    "hex": str.lower,
    "root": lambda value: None if value in ("0x00", "0x01") else value.lower(),
    "status": {"0": "scheduled", "1": "proposed", "2": "missed", "3": "orphaned"}.__getitem__,
    "json": lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False),
    "unix": lambda value: datetime.fromtimestamp(value, UTC),
    "duty": {0: "missed", 1: "included"}.__getitem__,
    "credentials": lambda value: None if value == "0x" else value.lower(),
}


@dataclass(frozen=True)
class Line:
    """One column: its kind, and the paths of its value on the wire."""

    name: str
    key: bool
    kind: str
    wire: tuple[str, ...]
    has_default: bool

    @property
    def is_time(self):
        return "-of-" in self.kind

    @property
    def dtype(self):
        return TIME if self.is_time else DTYPES[self.kind]

    @property
    def sent(self):
        """Whether the field is on the wire at all."""
        return bool(self.wire)

    def cell(self, value):
        """Return the cell of a wire value."""
        if value is None:
            return None
        if self.is_time:
            return datetime.fromisoformat(value)
        return CELLS.get(self.kind, lambda same: same)(value)

    def blank(self):
        """Return the cell of an omitted field."""
        return None if not self.has_default else Decimal(0) if self.kind == "wei" else 0

    def derived(self, row):
        """Return the start or end of the row's epoch, slot or day."""
        edge, _, unit = self.kind.partition("-of-")
        return GENESIS + timedelta(seconds=(row[unit] + (edge == "end")) * SECONDS[unit])


def read(text):
    """Return the lines of each table."""
    tables = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 1:
            tables[words[0]] = lines = []
        elif words:
            name, kind, *wire = words
            plain, _, default = kind.partition("=")
            unsent = "-of-" in plain or plain in ("seat", "request")
            own = () if unsent else (name.removesuffix("*"),)
            key = name.endswith("*")
            lines.append(
                Line(name.removesuffix("*"), key, plain, tuple(wire) or own, default == "0")
            )
    return tables


TABLES = read(TEXT)


def paths(record, prefix=""):
    """Return the fields of a record by path, including those of income and rates."""
    found = {}
    for name, value in record.items():
        if name in ("income", "rates") and isinstance(value, dict):
            found |= paths(value, f"{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found


def unknown(table, record, tables=TABLES):
    """Return the fields of a record that have no column."""
    known = {wire.removesuffix("[]") for line in tables[table] for wire in line.wire}
    return set(paths(record)) - known - {"income", "rates"}


def rows(table, records, tables=TABLES):
    """Return the rows of the records of a table, sorted by key, nulls last."""
    found = [row for record in records for row in rows_of(table, record, tables)]
    key = [line.name for line in tables[table] if line.key]
    return sorted(found, key=lambda row: [(row[name] is None, row[name]) for name in key])


def rows_of(table, record, tables):
    """Return the rows of one record: one, or one for each seat of a committee."""
    sent = paths(record)
    cells = {}
    for line in tables[table]:
        values = [sent[wire] for wire in line.wire if sent.get(wire) is not None]
        cells[line.name] = line.cell(values[0]) if values else line.blank()
    for line in tables[table]:
        if line.is_time and cells[line.name] is None:
            cells[line.name] = line.derived(cells)
    if table != "sync_committees":
        return [cells]
    return [
        cells | {"seat": seat, "validator_index": validator}
        for seat, validator in enumerate(record["validators"])
    ]
