"""Decoding of responses into frames, compared with json and pandas, and with json and polars.

A page has the income of 100 validators over 100 epochs in the format of the service: 10,000
records, without fields that are zero, with the week in each record. Five cases alternate:

ours    the decoder of the table: exact, typed, with the time of the epoch, not sorted yet
pandas  json.loads and pandas.json_normalize, then a conversion of the columns to the same types
polars  json.loads and one polars.DataFrame of all records, its structs unnested, and the times
parse   json.loads only
floor   msgspec decoding of the same records into typed objects, without a frame

Figures are CPU seconds, medians over rounds. Quote the ratios.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pandas as pd
import polars as pl
from sizes import choose

from beaconframes.calendar import MAINNET
from beaconframes.endpoint import Envelope, Request
from beaconframes.http.response import HttpResponse, parse_page
from beaconframes.schema import EnvelopeContext
from beaconframes.v1.attestations import Attestations
from beaconframes.v1.balance_history import BalanceHistory
from beaconframes.v1.income_history import IncomeHistory
from beaconframes.v1.yield_index import YieldIndex
from beaconframes.v2.rewards import Rewards

if TYPE_CHECKING:
    from collections.abc import Callable

    from beaconframes.schema import Table

ROUNDS = choose(15, 1)
V1 = Request("GET", "/api/v1/")
V2 = Request("GET", "/api/v2/", envelope=Envelope.V2)
VALIDATORS = 100
EPOCHS = 100
DAYS = choose(1_800, 18)
SMALL_PAGES = choose(5_000, 50)
OTHERS = ("pandas", "polars", "parse")
AMOUNTS = [
    column.wire_paths[0].removeprefix("income.")
    for column in IncomeHistory.columns
    if column.wire_paths and column.wire_paths[0].startswith("income.")
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


def decode_with_table(body: bytes) -> Any:
    """Check the envelope and decode."""
    return IncomeHistory.decode([parse_page(HttpResponse(200, {}, body), V1).data], MAINNET)


def decode_with_pandas(body: bytes) -> Any:
    """Decode with pandas: normalize, then convert the types."""
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


def decode_only(body: bytes) -> Any:
    """Decode into typed objects only."""
    return decoder.decode(body)


def duties(slim: bool) -> bytes:
    """Return the bytes of a page of attestation duties."""
    dice = random.Random(2)  # noqa: S311  # a seed is the point
    records = []
    for epoch in range(398_940, 398_940 - EPOCHS, -1):
        for validator in range(VALIDATORS):
            slot = epoch * 32 + dice.randrange(32)
            record = {
                "attesterslot": slot,
                "epoch": epoch,
                "inclusionslot": slot + 1,
                "status": 1,
                "validatorindex": 1_000_000 + validator,
            }
            records.append(record if slim else {**record, "committeeindex": 0, **week(epoch)})
    return enveloped(records)


def balances() -> bytes:
    """Return the bytes of a page of balances."""
    dice = random.Random(3)  # noqa: S311  # a seed is the point
    return enveloped(
        [
            {
                "balance": 32_000_000_000 + dice.randrange(10**8),
                "effectivebalance": 32_000_000_000,
                "epoch": epoch,
                "validatorindex": 1_000_000 + validator,
                **week(epoch),
            }
            for epoch in range(398_940, 398_940 - EPOCHS, -1)
            for validator in range(VALIDATORS)
        ]
    )


def days(count: int) -> list[bytes]:
    """Return the bytes of *count* responses with one day each."""
    dice = random.Random(4)  # noqa: S311  # a seed is the point
    wei = [c.wire_paths[0] for c in YieldIndex.columns if c.unit == "wei"]
    rates = [c.wire_paths[0] for c in YieldIndex.columns if c.unit == "fraction"]
    return [
        enveloped(
            {
                "day": day,
                "day_start": f"{MAINNET.time_of('day', day):%Y-%m-%dT%H:%M:%SZ}",
                "day_end": f"{MAINNET.time_of('day', day + 1):%Y-%m-%dT%H:%M:%SZ}",
                **{name: dice.random() / 20 for name in rates},
                **{name: dice.randrange(10**21, 10**25) for name in wei},
            }
        )
        for day in range(count)
    ]


def rewards(pages: int) -> list[bytes]:
    """Return the bytes of *pages* pages of V2 rewards, with ten records each."""
    dice = random.Random(5)  # noqa: S311  # a seed is the point
    proposal = [c.wire_paths[0][9:] for c in Rewards.columns if c.wire and "proposal." in c.wire]

    def wei() -> str:
        return str(dice.randrange(10**13))

    def part() -> dict[str, str]:
        return {name: wei() for name in ("total", "reward", "penalty", "missed_reward")}

    def record(index: int) -> dict[str, Any]:
        return {
            "validator": {"index": index, "public_key": f"0x{index:096x}"},
            **{name: wei() for name in ("total", "total_reward", "total_penalty", "total_missed")},
            "attestation": {
                **{vote: part() for vote in ("head", "source", "target")},
                "inactivity_leak_penalty": "0",
                "total": wei(),
                "inclusion_delay": None,
            },
            "sync_committee": part(),
            "proposal": dict.fromkeys(proposal, "0"),
            "finality": "finalized",
        }

    bounds = {
        "slot": {"start": 12_771_168, "end": 12_771_199},
        "epoch": {"start": 399_099, "end": 399_099},
        "timestamp": {"start": 1_760_078_039, "end": 1_760_078_422},
    }
    answers = (
        {
            "data": [record(page * 10 + n) for n in range(10)],
            "range": bounds,
            "paging": {"next_cursor": f"eyJpIjo{page}"},
        }
        for page in range(pages)
    )
    return [json.dumps(answer, separators=(",", ":")).encode() for answer in answers]


def week(epoch: int) -> dict[str, Any]:
    """Return the fields of the week, which the service repeats in every record."""
    number = epoch // 1575
    return {
        "week": number,
        "week_start": f"{MAINNET.time_of('week', number):%Y-%m-%dT%H:%M:%SZ}",
        "week_end": f"{MAINNET.time_of('week', number + 1):%Y-%m-%dT%H:%M:%SZ}",
    }


def enveloped(data: Any) -> bytes:
    """Return the bytes of a response."""
    return json.dumps({"status": "OK", "data": data}, separators=(",", ":")).encode()


def frame_of(table: type[Table], bodies: list[bytes]) -> Any:
    """Check each envelope and decode all responses into one frame."""
    pages = (parse_page(HttpResponse(200, {}, body), V1).data for body in bodies)
    return table.decode(pages, MAINNET)


def rewards_of(bodies: list[bytes]) -> Any:
    """Check each V2 envelope and decode all responses, with the epoch of the envelope."""
    found = [parse_page(HttpResponse(200, {}, body), V2) for body in bodies]
    around = [EnvelopeContext(page.envelope_fields, {}) for page in found]
    return Rewards.decode((page.data for page in found), MAINNET, around)


def normalize_with_pandas(bodies: list[bytes]) -> Any:
    """Decode with pandas: one frame for each response, one concat, then convert the times."""
    frame = pd.concat([pd.json_normalize(json.loads(body)["data"]) for body in bodies])
    for name in ("week_start", "week_end", "day_start", "day_end"):
        if name in frame:
            frame[name] = pd.to_datetime(frame[name], utc=True)
    if "epoch" in frame:
        frame["time"] = pd.to_datetime(1606824023 + 384 * frame["epoch"], unit="s", utc=True)
    return frame


def decode_with_polars(bodies: list[bytes]) -> pl.DataFrame:
    """Decode with polars: one frame of all records, structs unnested, then convert the times."""
    records: list[dict[str, Any]] = []
    for body in bodies:
        data = json.loads(body)["data"]
        records += data if isinstance(data, list) else [data]
    frame = pl.DataFrame(records, infer_schema_length=None)
    while structs := [name for name, kind in frame.schema.items() if isinstance(kind, pl.Struct)]:
        frame = frame.unnest(structs, separator=".")
    names = {"week_start", "week_end", "day_start", "day_end"}.intersection(frame.columns)
    frame = frame.with_columns(pl.col(*names).str.to_datetime(time_zone="UTC")) if names else frame
    if "epoch" in frame.columns:
        frame = frame.with_columns(time=pl.from_epoch(1606824023 + 384 * pl.col("epoch")))
    return frame.with_columns(pl.selectors.starts_with("income.").fill_null(0))


def parse(bodies: list[bytes]) -> list[Any]:
    """Parse only."""
    return [json.loads(body) for body in bodies]


def measure(
    cases: dict[str, Callable[[], Any]], rounds: int = ROUNDS, *, warm: bool = True
) -> dict[str, float]:
    """Return the median CPU seconds of each case, alternating, after one round to *warm* up."""
    spent: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(not warm, rounds + 1):
        for name, case in cases.items():
            start = time.process_time()
            case()
            if number:
                spent[name].append(time.process_time() - start)
    return {name: statistics.median(times) for name, times in spent.items()}


def main() -> None:
    """Print the medians and the ratios."""
    body = page()
    fees = [int(fee) for fee in decode_with_table(body)["tx_fee_reward_wei"]]
    if fees != list(decode_with_pandas(body)["income.tx_fee_reward_wei"]):
        raise SystemExit("the two frames differ")
    print(f"{'':<24}{'ours':>11}{'pandas':>18}{'polars':>18}{'parse':>18}    CPU, medians, ratios")
    income = {
        "ours": lambda: decode_with_table(body),
        "pandas": lambda: decode_with_pandas(body),
        "floor": lambda: decode_only(body),
        **compare([body]),
    }
    cost = measure(income)
    print_line("income, 10,000 records", cost)
    print(f"{'':<24}{cost['floor'] * 1e3:>8.1f} ms is the floor: ours is ", end="")
    print(f"{cost['ours'] / cost['floor']:.1f} times it")
    cases: list[tuple[str, type[Table], list[bytes], int]] = [
        ("attestations, 10,000", Attestations, [duties(slim=False)], ROUNDS),
        ("attestations, slim", Attestations, [duties(slim=True)], ROUNDS),
        ("balances, 10,000", BalanceHistory, [balances()], ROUNDS),
        (f"yield index, {DAYS:,} days", YieldIndex, days(DAYS), 3),
    ]
    for name, table, bodies, rounds in cases:
        calls = {
            "ours": partial(frame_of, table, bodies),
            "pandas": partial(normalize_with_pandas, bodies),
        }
        print_line(name, measure(calls | compare(bodies), rounds))
    small = rewards(SMALL_PAGES)
    calls = {"ours": lambda: rewards_of(small), "pandas": lambda: normalize_with_pandas(small)}
    # One round of pandas takes half a minute.
    print_line(f"V2, {SMALL_PAGES:,} pages", measure(calls | compare(small), rounds=1, warm=False))


def compare(bodies: list[bytes]) -> dict[str, Callable[[], Any]]:
    """Return the cases that are the same for all responses."""
    return {"polars": partial(decode_with_polars, bodies), "parse": partial(parse, bodies)}


def print_line(name: str, cost: dict[str, float]) -> None:
    """Print one line of the table: times, and each as a multiple of ours."""
    mine = cost["ours"]
    others = (f"{cost[n] * 1e3:>9.1f} ms{cost[n] / mine:>6.2f}" for n in OTHERS)
    print(f"{name:<24}{mine * 1e3:>8.1f} ms{''.join(others)}")


if __name__ == "__main__":
    main()
