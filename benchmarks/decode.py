"""From the bytes of a page to the finished frame, beside what a user does without us.

A page is what the service really sends for 100 validators over 100 epochs of income: 10,000
records, fields that are zero left out, the week repeated in each. Three ways alternate in one run:

ours    the table's decoder: exact, typed, with the epoch's time, sorted by nothing yet
users   json.loads, pandas.json_normalize, then the columns brought to the same types by hand
floor   msgspec decoding the same records into typed objects, and stopping there

CPU seconds, medians over rounds; the ratios are what to quote.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from typing import TYPE_CHECKING, Any

import msgspec
import pandas as pd

from beaconframes.calendar import MAINNET
from beaconframes.client.answer import judge
from beaconframes.client.body import Reply
from beaconframes.v1.income_history import IncomeHistory

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 15
VALIDATORS = 100
EPOCHS = 100
AMOUNTS = [
    column.spellings[0].removeprefix("income.")
    for column in IncomeHistory.columns
    if column.spellings and column.spellings[0].startswith("income.")
]


def page() -> bytes:
    """Return the bytes of one full page."""
    dice = random.Random(1)  # noqa: S311  # a seed is the point
    records = []
    for epoch in range(398_940, 398_940 - EPOCHS, -1):
        week = epoch // 1575
        for validator in range(VALIDATORS):
            income: dict[str, Any] = {
                "attestation_source_reward": dice.randint(3300, 3400),
                "attestation_target_reward": dice.randint(6200, 6300),
                "attestation_head_reward": dice.randint(3100, 3400),
            }
            if dice.random() < 0.01:
                income = {"attestation_source_penalty": 3371, "attestation_target_penalty": 6261}
            if dice.random() < 0.02:
                income["sync_committee_reward"] = dice.randint(20_000, 21_000)
            if dice.random() < 0.001:
                income["proposer_attestation_inclusion_reward"] = dice.randint(10**7, 10**8)
                income["tx_fee_reward_wei"] = str(dice.randint(10**15, 10**20))
            records.append(
                {
                    "income": income,
                    "epoch": epoch,
                    "validatorindex": 1_000_000 + validator,
                    "week": week,
                    "week_start": MAINNET.time_of("week", week).strftime("%Y-%m-%dT%H:%M:%SZ"),
                    "week_end": MAINNET.time_of("week", week + 1).strftime("%Y-%m-%dT%H:%M:%SZ"),
                }
            )
    return json.dumps({"status": "OK", "data": records}, separators=(",", ":")).encode()


def ours(body: bytes) -> Any:
    """Judge the envelope and decode."""
    return IncomeHistory.decode([judge(Reply(200, {}, body), "v1").data], MAINNET)


def users(body: bytes) -> Any:
    """Do what notebooks do: normalise, then repair the types that went wrong."""
    frame = pd.json_normalize(json.loads(body)["data"])
    for amount in AMOUNTS:
        name = f"income.{amount}"
        if name not in frame:
            frame[name] = 0
        elif amount == "tx_fee_reward_wei":
            frame[name] = frame[name].fillna("0").map(int)
        else:
            frame[name] = frame[name].fillna(0).astype("int64")
    frame["time"] = pd.to_datetime(1606824023 + 384 * frame["epoch"], unit="s", utc=True)
    return frame.drop(columns=["week", "week_start", "week_end"])


Income = msgspec.defstruct(
    "Income",
    [
        (n, str | None if n.endswith("wei") else int, None if n.endswith("wei") else 0)
        for n in AMOUNTS
    ],
)


class Record(msgspec.Struct):
    """One record, typed."""

    epoch: int
    validatorindex: int
    income: Income  # type: ignore[valid-type]


class Page(msgspec.Struct):
    """One page, typed."""

    status: str
    data: list[Record]


decoder = msgspec.json.Decoder(Page)


def floor(body: bytes) -> Any:
    """Decode into objects and stop there."""
    return decoder.decode(body)


def measure(ways: dict[str, Callable[[bytes], Any]], body: bytes) -> dict[str, float]:
    """Return the median CPU seconds of each way, alternating, after one round to warm up."""
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(ROUNDS + 1):
        for name, way in ways.items():
            start = time.process_time()
            way(body)
            if number:
                spent[name].append(time.process_time() - start)
    return {name: statistics.median(times) for name, times in spent.items()}


def main() -> None:
    """Print the medians and the ratios."""
    body = page()
    fees = [int(fee) for fee in ours(body)["tx_fee_reward_wei"]]
    if fees != list(users(body)["income.tx_fee_reward_wei"]):
        raise SystemExit("the two frames differ")
    cost = measure({"ours": ours, "users": users, "floor": floor}, body)
    print(f"income page: {VALIDATORS * EPOCHS} records, {len(body) / 1e6:.1f} MB, {ROUNDS} rounds")
    for name, seconds in cost.items():
        print(f"  {name:6} {seconds * 1000:7.1f} ms CPU")
    print(f"  the user's way costs {cost['users'] / cost['ours']:.1f} times ours")
    print(f"  ours costs {cost['ours'] / cost['floor']:.1f} times the floor")


if __name__ == "__main__":
    main()
