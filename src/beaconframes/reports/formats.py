"""How the values of a report are shown: amounts, shares, times and texts."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from beaconframes.text import visible

_HEX = re.compile(r"(0x[0-9a-f]{4})[0-9a-f]{32,}([0-9a-f]{4})")
_LONGEST_TEXT, _LONGEST_NAME, _LONGEST_HINT = 160, 24, 300


def show_count(value: Any) -> str:
    """Return a whole number with separators."""
    return "" if value is None else f"{value:,}"


def show_quantity(value: int, noun: str) -> str:
    """Return a number and what it counts, such as "1 day" and "2 days"."""
    return f"{value:,} {noun}{'' if value == 1 else 's'}"


def show_index(value: Any) -> str:
    """Return a number that identifies: without separators."""
    return "" if value is None else str(value)


def show_eth(gwei: Any) -> str:
    """Return an amount of gwei in ETH, with five decimals."""
    return "unknown" if gwei is None else _show_ratio(int(gwei), 10**9)


def show_cost(gwei: Any) -> str:
    """Return a cost in ETH; nothing for what needs attention but cost nothing."""
    return "" if gwei == 0 else show_eth(gwei)


def show_cost_unknown(count: Any) -> str:
    """Return how many costs are unknown; nothing if all are known."""
    return show_count(count) if count else ""


def show_eth_wei(wei: Any) -> str:
    """Return an amount of wei in ETH, with five decimals."""
    return "unknown" if wei is None else _show_ratio(int(wei), 10**18)


def _show_ratio(amount: int, unit: int) -> str:
    """Return *amount* in *unit*, rounded exactly: a float has too few digits for large sums."""
    steps = (2 * abs(amount) * 10**5 + unit) // (2 * unit)
    if amount and not steps:
        return "<0.00001" if amount > 0 else ">\u22120.00001"
    sign = "\u2212" if amount < 0 and steps else ""
    return f"{sign}{steps // 10**5:,}.{steps % 10**5:05d}"


def show_eth_signed(gwei: Any) -> str:
    """Return a difference of amounts of gwei in ETH, with its sign."""
    text = show_eth(gwei)
    return f"+{text}" if text[0].isdigit() and text != show_eth(0) else text


def show_percent(share: Any) -> str:
    """Return a share in percent."""
    return "unknown" if share is None else f"{100 * share:z,.2f} %".replace("-", "\u2212")


def show_decimal(value: Any, places: int = 1) -> str:
    """Return a number with some decimals."""
    return "unknown" if value is None else f"{value:z,.{places}f}".replace("-", "\u2212")


def show_signed(value: Any) -> str:
    """Return a difference, with its sign."""
    return "unknown" if value is None else _show_sign(value, 1)


def show_value(amount: Any) -> str:
    """Return an amount of a currency, with two decimals, rounded half up."""
    if amount is None:
        return "unknown"
    rounded = amount.quantize(Decimal("0.01"), ROUND_HALF_UP)
    return f"{rounded:z,.2f}".replace("-", "\u2212")


def show_points(share: Any) -> str:
    """Return a difference of shares in percentage points, with its sign."""
    return f"{_show_sign(100 * share, 2)} points"


def _show_sign(value: float, places: int) -> str:
    """Return a rounded number with its sign; zero has none."""
    text = f"{value:+,.{places}f}"
    return text.replace("-", "\u2212") if text.strip("+-0.") else text[1:]


def show_moment(value: Any) -> str:
    """Return a time to the minute, in UTC."""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    return value.isoformat() if isinstance(value, date) else ""


def show_utc(iso: str) -> str:
    """Return a time in ISO 8601 to the minute, in UTC; other text as `show_text` does."""
    try:
        return f"{datetime.fromisoformat(iso).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return show_text(iso)


def show_text(value: Any) -> str:
    """Return text of any origin: control and invisible characters are shown escaped."""
    return "" if value is None else visible(value, _LONGEST_TEXT)


def show_short(value: Any) -> str:
    """Return text with short addresses and public keys: their first and last four digits."""
    return _HEX.sub(r"\1…\2", show_text(value))


def show_label(value: Any) -> str:
    """Return the name of a validator or group, short enough for a narrow column."""
    return "" if value is None else visible(value, _LONGEST_NAME)


def show_hint(value: Any) -> str:
    """Return the whole name if `show_label` shortens it."""
    whole = "" if value is None else visible(value, _LONGEST_HINT)
    return "" if whole == show_label(value) else whole


def show_name(value: Any) -> str:
    """Return the name of a column as words."""
    return show_text(value).replace("_", " ")


def show_yes(value: Any) -> str:
    """Return yes, no, or nothing."""
    return {True: "yes", False: "no"}.get(value, "")


def show_verdict(value: Any) -> str:
    """Return the verdict of a group; one that cannot be compared has none."""
    return "unknown" if value is None else show_text(value)


FILTERS = {
    "count": show_count,
    "quantity": show_quantity,
    "index": show_index,
    "eth": show_eth,
    "eth_wei": show_eth_wei,
    "moment": show_moment,
    "utc": show_utc,
    "text": show_text,
}
"""The filters of the templates, by name."""
