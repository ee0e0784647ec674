"""The figures of a report: the cards, each with one number, one comparison and a word; the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.analysis.execution_income import RECEIVED
from beaconframes.reports.completeness import read_answer, read_marks, show_marked
from beaconframes.reports.formats import (
    show_count,
    show_eth,
    show_eth_wei,
    show_percent,
    show_points,
    show_quantity,
    show_value,
)
from beaconframes.reports.parts.answer import OFFLINE, ONLINE
from beaconframes.reports.verdict import describe_basis, describe_difference

if TYPE_CHECKING:
    from collections.abc import Callable

    from beaconframes.reports.input_frames import Frames

Values = dict[str, Any]

_LUCK = ("proposal_luck_wei", "sync_luck_wei", "execution_wei")
"""The parts of the difference to average validators that are luck."""


@dataclass(frozen=True)
class Card:
    """A card: one number, one comparison, and a word that says whether to look or to act."""

    name: str
    title: str
    number: str
    """The column of the number."""
    form: Callable[[Any], str]
    unit: str
    fallback: tuple[str, str]
    """The column that is shown if the number is unknown, and what it is then."""
    compare: Callable[[Values], str]
    needs: tuple[str, ...]
    """The columns of the comparison."""
    measure: Callable[[Values], float | None]
    """What the word depends on: the lower, the better."""
    good: float
    look: float
    """The largest measures of the words "good" and "look"."""
    limit: str
    below: str
    """How a largest measure is written, and what it is."""
    part: str
    """The part of the report without which there is no card."""

    @property
    def rule(self) -> str:
        """Return the rule of the word."""
        good, look = (self.limit.format(largest) for largest in (self.good, self.look))
        return f"good: at most {good} {self.below}; look: at most {look}; act: more"


@dataclass(frozen=True)
class ShownCard:
    """The texts of a card."""

    name: str
    title: str
    number: str
    unit: str
    comparison: str
    word: str
    rule: str
    part: str


def _compare_income(values: Values) -> str:
    if not values.get("average_wei"):
        return "average validators unknown"
    return f"{describe_difference(values)} than average validators, {describe_basis(values)}"


def _measure_income(values: Values) -> float | None:
    average, parts = values.get("average_wei"), [values.get(name) for name in _LUCK]
    if not average or None in parts:
        return None
    luck = sum(part for part in parts if part is not None)
    return -100 * float((values["difference_wei"] - luck) / average)


def _compare_rates(values: Values) -> str:
    own, index = values.get("apr_on_effective"), values.get("index_apr")
    text = f"yield index {show_percent(index)}"
    if own is None or index is None:
        return text
    # The difference of the numbers as they are printed.
    return f"{text}, difference {show_points((round(100 * own, 2) - round(100 * index, 2)) / 100)}"


def _measure_rates(values: Values) -> float | None:
    own, index = values.get("apr_on_effective"), values.get("index_apr")
    return None if own is None or not index else 100 - 100 * own / index


def _compare_votes(values: Values) -> str:
    text = f"network {show_percent(values.get('network_effectiveness'))}"
    if values.get("network_since") is None:
        return text
    ends = (f"{values[name]:%Y-%m-%d}" for name in ("network_since", "network_until"))
    return f"{text}, {' to '.join(dict.fromkeys(ends))}"


def _measure_votes(values: Values) -> float | None:
    own, network = values.get("effectiveness"), values.get("network_effectiveness")
    return None if own is None or network is None else 100 * (network - own)


def _compare_losses(values: Values) -> str:
    missed = show_eth_wei(values.get("average_missed_wei"))
    return f"average validators {missed}{'' if missed == 'unknown' else ' ETH'}"


def _measure_losses(values: Values) -> float | None:
    lost, missed = values.get("lost_gwei"), values.get("average_missed_wei")
    return None if lost is None or not missed or missed < 0 else lost * 10**9 / float(missed)


def _compare_states(values: Values) -> str:
    return f"{'unknown' if values['offline'] is None else show_count(values['offline'])} offline"


def _measure_states(values: Values) -> float | None:
    if not values["online"] and not values["offline"]:
        return None
    share: float = values["offline"] / (values["online"] + values["offline"])
    return 100 * share


CARDS = (
    Card(
        "income", "Net income", "net_income_wei", show_eth_wei, "ETH",
        ("consensus_income_gwei", "consensus layer only"),
        _compare_income, ("difference_wei",),
        _measure_income, 1, 5, "{} %", "less than average validators, without luck", "income",
    ),
    Card(
        "rate", "Yearly rate", "apr_on_effective", show_percent, "on effective balance",
        ("cl_apr_on_effective", "consensus layer only, on effective balance"),
        _compare_rates, ("index_apr",),
        # Votes earn 54 of 64 parts of the consensus rewards, and none of the fees.
        _measure_rates, 25, 50, "{} %", "below the yield index", "rates",
    ),
    Card(
        "effectiveness", "Effectiveness", "effectiveness", show_percent, "of vote rewards",
        ("included_rate", "of votes included (uptime)"),
        _compare_votes, ("network_effectiveness",),
        _measure_votes, 1, 5, "{:.1f} points", "below the network", "effectiveness",
    ),
    Card(
        "lost", "Lost", "lost_gwei", show_eth, "ETH", ("", ""),
        _compare_losses, ("average_missed_wei",),
        _measure_losses, 1.5, 3, "{} times", "what average validators missed", "problems",
    ),
    Card(
        "online", "Online now", "online", show_count, "", ("", ""),
        _compare_states, ("offline",),
        _measure_states, 0, 1, "{} %", "of the active validators offline", "validators",
    ),
)  # fmt: skip
"""The cards of a report. Page, text, JSON and guide follow from them."""


def list_cards(frames: Frames) -> list[ShownCard]:
    """Return the cards as texts; the word of a number that is not complete is unknown."""
    values, marks = _read_values(frames)
    return [_show_card(card, values, marks) for card in CARDS]


def _read_values(frames: Frames) -> tuple[Values, dict[str, str]]:
    """Return the numbers of the answer, the comparison and the states, and their marks."""
    values, marks = read_answer(frames), read_marks(frames, "summary")
    found = {str(name): mark for name, mark in marks.items()}
    for row in frames.get("comparison", pl.DataFrame()).rows(named=True):
        values |= row
        if (mark := read_marks(frames, "comparison").get(None)) is not None:
            found |= dict.fromkeys(row, mark)
    status = frames["validators"]["status"]
    counts = [int(status.str.ends_with(state).sum()) for state in (ONLINE, OFFLINE)]
    # Other sources state that a validator is active, not whether it is online.
    values |= dict(zip(("online", "offline"), counts if any(counts) else (None, None), strict=True))
    return values, found


def _show_card(card: Card, values: Values, marks: dict[str, str]) -> ShownCard:
    number, unit = card.number, card.unit
    other, basis = card.fallback
    if values.get(number) is None and values.get(other) is not None:
        number, unit = other, f"ETH, {basis}" if card.unit == "ETH" else basis
    form = show_eth if number.endswith("_gwei") else card.form
    text = show_marked(form(values.get(number)) or "unknown", marks.get(number))
    compared = {marks[name] for name in card.needs if name in marks} - {"unknown"}
    comparison = show_marked(card.compare(values), min(compared, default=None))
    own = {marks[number]} if number in marks else set()
    word = _find_word(card, card.measure(values), compared | own)
    unit = ", ".join(filter(None, (unit, _describe_note(number, values))))
    return ShownCard(
        card.name, card.title, text, unit if text != "unknown" else "", comparison, word,
        card.rule, card.part,
    )  # fmt: skip


def _find_word(card: Card, measure: float | None, marks: set[str]) -> str:
    """Return the word of a measure; one that is "at least" the limit exceeds it in any case."""
    if measure is None or marks - {"at least"}:
        return "unknown"
    if measure > card.look:
        return "act"
    if marks:
        return "unknown"
    return "good" if measure <= card.good else "look"


@dataclass(frozen=True)
class Figure:
    """A number of the answer: how it is shown, and how it is computed."""

    name: str
    title: str
    form: Callable[[Any], str]
    unit: str
    method: str
    is_in_text: bool = False
    """Whether the text for a terminal has it, too, below the cards."""


FIGURES = (
    Figure(
        "net_income_wei", "Net income", show_eth_wei, " ETH",
        "Consensus and execution layer. Deposits and withdrawals are no income.",
    ),
    Figure(
        "consensus_income_gwei", "Consensus layer", show_eth, " ETH",
        "Rewards for votes, sync committees and blocks, less penalties.", is_in_text=True,
    ),
    Figure(
        "execution_income_wei", "Execution layer", show_eth_wei, " ETH",
        "Priority fees (tips) of the blocks, or what builders paid for them (MEV).",
        is_in_text=True,
    ),
    Figure(
        "relay_payments_wei", "From builders", show_eth_wei, " ETH",
        "The part of the execution layer that builders paid through relays (MEV-Boost).",
    ),
    Figure(
        "income_value", "Value at receipt", show_value, " {currency}",
        "Net income of each day, at the last price of the day.", is_in_text=True,
    ),
    Figure(
        "apr_on_effective", "Yearly rate", show_percent, "",
        "Net income over the effective balances, for 365 days: an APR. An APY would compound it.",
    ),
    Figure(
        "apr_on_32_eth", "Rate on 32 ETH", show_percent, "",
        "Net income over 32 ETH for each validator, for 365 days.",
    ),
    Figure(
        "apr_as_index", "Index method", show_percent, "",
        "As the yield index is computed: whole days, priority fees without builder payments.",
    ),
    Figure(
        "index_apr", "Yield index", show_percent, "",
        "What all validators of the network earned, for the same effective balances and days.",
    ),
    Figure(
        "difference_bp", "Index difference", lambda bp: show_points(bp / 10_000), "",
        "The rate by the index method less the yield index.",
    ),
    Figure(
        "effectiveness", "Effectiveness", show_percent, "",
        "Earned share of the rewards for source, target and head votes. Nearest to RAVER.",
    ),
    Figure(
        "network_effectiveness", "Network", show_percent, "",
        "Effectiveness of all validators.",
    ),
    Figure(
        "included_rate", "Votes included", show_percent, "",
        "Share of votes that blocks included: others call it uptime.",
    ),
    Figure(
        "lost_gwei", "Lost", show_eth, " ETH",
        "What missed and late duties cost: missing rewards, and penalties.",
    ),
    Figure(
        "avoidable_gwei", "Avoidable", show_eth, " ETH",
        "The part that other validators did not lose.", is_in_text=True,
    ),
    Figure(
        "unavoidable_gwei", "Unavoidable", show_eth, " ETH",
        "The part that other validators lost, too.",
    ),
    Figure(
        "unknown_gwei", "Unknown cause", show_eth, " ETH",
        "The part of which it is unknown whether others lost it.",
    ),
)  # fmt: skip
"""The numbers of the answer. A method states once what others call a number."""


@dataclass(frozen=True)
class ShownFigure:
    """A number of the answer as text, with its mark, its method and a note."""

    title: str
    text: str
    method: str
    note: str
    is_in_text: bool


def list_figures(frames: Frames) -> list[ShownFigure]:
    """Return the numbers of the answer as texts, each with its mark."""
    answer, marks = read_answer(frames), read_marks(frames, "summary")
    currency = str(answer.get("currency", "")).upper()
    found = []
    for figure in FIGURES:
        if figure.name not in answer:
            continue
        value = answer[figure.name]
        text = "unknown" if value is None else figure.form(value)
        text += "" if value is None else figure.unit.format(currency=currency)
        text = show_marked(text, marks.get(figure.name))
        note = _describe_note(figure.name, answer)
        detail = note
        if figure.name == "execution_income_wei" and value is None:
            detail = answer.get("execution_income_basis") or ""
        method = f"{figure.method} {detail[:1].upper()}{detail[1:]}." if detail else figure.method
        found.append(ShownFigure(figure.title, text, method, note, figure.is_in_text))
    return found


def _describe_note(name: str, answer: Values) -> str:
    if name == "execution_income_wei" and answer.get(name) is not None:
        basis = answer.get("execution_income_basis")
        return "" if basis in (None, RECEIVED) else basis
    if name == "income_value" and answer.get("days_without_price"):
        return f"{show_quantity(answer['days_without_price'], 'day')} without a price"
    if name == "lost_gwei" and answer.get(name) is not None and answer.get("cost_unknown"):
        return f"the cost of {show_quantity(answer['cost_unknown'], 'problem')} is unknown"
    return ""
