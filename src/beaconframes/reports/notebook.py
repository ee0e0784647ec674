"""A report as a notebook: the calls that make each part, as a starting point."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from beaconframes.reports.formats import show_quantity
from beaconframes.reports.parts.problems import PROBLEM_INPUTS

if TYPE_CHECKING:
    import polars as pl

    from beaconframes.reports.input_frames import Inputs

_LOADS = {
    "validators": "table = bf.load_validators(validators)",
    "proposals": "proposals = bf.load_proposals(validators, **span)",
    "blocks": "blocks = bf.load_produced_blocks(validators).filter(\n"
    '    pl.col("epoch").is_between(span["since"], span["until"])\n)',
}
_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def build_notebook(inputs: Inputs, frames: dict[str, pl.DataFrame]) -> str:
    """Return the text of a notebook without outputs; it loads and computes what the report did."""
    steps = _list_epochs(inputs, frames) if inputs.has_epochs else _list_days(inputs, frames)
    cells = [_build_cell("markdown", _describe(inputs)), _build_cell("code", _connect(inputs))]
    for text, code in steps:
        cells += [_build_cell("markdown", text), _build_cell("code", code)]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    metadata = {
        "beaconframes": "report",
        "kernelspec": _KERNEL,
        "language_info": {"name": "python"},
    }
    # `Report.to_notebook` finds the metadata at the beginning of a notebook that is unchanged.
    return json.dumps(
        {"metadata": metadata, "nbformat": 4, "nbformat_minor": 5, "cells": cells}, indent=1
    )


def _build_cell(kind: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {
        "cell_type": kind,
        "metadata": {},
        "source": text.strip("\n").splitlines(keepends=True),
    }
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def _describe(inputs: Inputs) -> str:
    chain = inputs.chain
    first = chain.time_of("epoch", inputs.first)
    last = chain.time_of("epoch", inputs.last + 1)
    return (
        f"# Report on {show_quantity(len(inputs.indices), 'validator')}\n\n"
        f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC, epochs {inputs.first} to "
        f"{inputs.last}. Connect to the source of the report first: `bf.connect()` for an "
        "explorer, `bf.node(url)` for your own node, `bf.open(folder)` for a dataset."
    )


def _connect(inputs: Inputs) -> str:
    """Return the first cell: the source, the validators and the range."""
    lines = ["import polars as pl", "", "import beaconframes as bf", ""]
    lines += ["# bf.connect()  # or bf.node(url), bf.open(folder)", ""]
    lines.append(f"validators = {_show_indices(inputs.indices)}")
    lines.append(f'span = {{"since": {inputs.first}, "until": {inputs.last}}}')
    if inputs.groups is not None:
        lines.append(f"groups = pl.DataFrame({inputs.groups.to_dict(as_series=False)!r})")
    return "\n".join(lines)


def _show_indices(indices: list[int]) -> str:
    """Return the code of a list of indices: a range where they are consecutive."""
    if len(indices) > 2 and indices[-1] - indices[0] == len(indices) - 1:
        return f"range({indices[0]}, {indices[-1] + 1})"
    return repr(indices)


def _show_options(inputs: Inputs, *names: str) -> str:
    """Return keyword arguments for the frames that were loaded."""
    return "".join(f", {name}={name}" for name in names if inputs.get(name) is not None)


def _load(inputs: Inputs, loads: dict[str, str]) -> tuple[str, str]:
    """Return text and code that load the frames of *loads* which the report has."""
    loads = _LOADS | loads | {"index": _load_index(inputs)}
    return "## Load", "\n".join(
        code for name, code in loads.items() if inputs.get(name) is not None
    )


def _find_problems(inputs: Inputs, arguments: str) -> str:
    """Return code that lists the problems as the report does."""
    more = _show_options(inputs, *PROBLEM_INPUTS)
    epoch = 'span["until"]' if inputs.period is None else inputs.period[1]
    return f"bf.analysis.problems(\n    {arguments}{more},\n    epoch={epoch},\n)"


def _list_epochs(inputs: Inputs, frames: dict[str, pl.DataFrame]) -> list[tuple[str, str]]:
    """Return text and code of each part, for a report with a row per epoch."""
    blocks = _show_options(inputs, "blocks")
    loads = {
        "income": "income = bf.load_income_history(validators, **span)",
        "balances": "balances = bf.load_balance_history(validators, **span)",
        "withdrawals": "withdrawals = bf.load_validator_withdrawals(validators, **span)",
        "deposits": "deposits = bf.load_deposits(validators)",
        "network": _load_network(inputs),
        "attestations": _load_duties(inputs, "attestations = bf.load_attestations(validators, {})"),
        "slots": _load_duties(inputs, "slots = bf.load_epoch_slots({})"),
    }
    index = ", index" if inputs.get("index") is not None else ""
    withdrawals = "withdrawals" if inputs.get("withdrawals") is not None else "None"
    rates = f"bf.analysis.apr(\n    income, balances{index}{blocks}, validators=table\n)"
    votes = "bf.analysis.attestation_rates(income, validators=table)"
    groups = (
        f"rates = bf.analysis.apr(\n    income, balances{blocks}, "
        'every="all", by="validator_index"\n)\nbf.analysis.compare_groups(\n    '
        'rates.join(groups, on="validator_index"), by="group", values="apr_on_effective"\n)'
    )
    arguments = "balances, income, withdrawals=withdrawals, validators=table"
    arguments += _show_options(inputs, "deposits")
    changes = f"changes = bf.analysis.reconcile(\n    {arguments}\n)\n"
    changes += 'changes.filter(pl.col("unexplained_gwei") != 0)'
    steps = (
        ("income", "## Income by day", f"bf.analysis.income(income{blocks})"),
        ("income", "By component:", f'bf.plot.income(income{blocks}, by="component");'),
        ("income", "By day and validator:", f"bf.analysis.ledger(income, {withdrawals}{blocks})"),
        ("rates", "## Yearly rates, beside the yield index", rates),
        ("effectiveness", "## Effectiveness of votes", votes),
        ("problems", "## What to look at", _find_problems(inputs, "table, income, balances")),
        ("proposals", "## Proposals", "bf.plot.proposals(proposals);"),
        ("sync", "## Sync committees", "bf.analysis.sync_income(income)"),
        ("groups", "## Groups", groups),
        ("reconciliation", "## Do the balances reconcile?", changes),
    )
    return [_load(inputs, loads), *((text, code) for part, text, code in steps if part in frames)]


def _list_days(inputs: Inputs, frames: dict[str, pl.DataFrame]) -> list[tuple[str, str]]:
    """Return text and code of each part, for a report of daily statistics."""
    first, last = (n // inputs.chain.epochs_per_day for n in (inputs.first, inputs.last))
    blocks = ", blocks" if inputs.get("blocks") is not None else ""
    stats = f"stats = bf.load_validator_stats(validators, since={first}, until={last})"
    index = ", index" if inputs.get("index") is not None else ""
    daily = f"daily = bf.analysis.daily_income(stats{blocks})\ndaily"
    rates = f"bf.analysis.daily_rates(daily{index}, validators=table)"
    steps = (
        ("income", "## Income by day and validator", daily),
        ("income", "## Yearly rates", rates),
        ("effectiveness", "## Votes", "bf.analysis.daily_votes(stats, table)"),
        ("problems", "## What to look at", _find_problems(inputs, "table")),
    )
    loads = _load(inputs, {"stats": stats})
    return [loads, *((text, code) for part, text, code in steps if part in frames)]


def _load_index(inputs: Inputs) -> str:
    length = inputs.chain.epochs_per_day
    index = inputs.get("index")
    last = inputs.last // length if index is None or index.is_empty() else index["day"][-1]
    return f"index = bf.load_yield_index(since={min(inputs.first // length, last)}, until={last})"


def _load_duties(inputs: Inputs, code: str) -> str:
    """Return the code that loads the last epochs of the range, which have attestation duties."""
    rows = inputs.get("attestations")
    first = inputs.last if rows is None or rows.is_empty() else rows["epoch"].sort()[0]
    return code.format(f"since={first}, until={inputs.last}")


def _load_network(inputs: Inputs) -> str:
    network = inputs.get("network")
    window = "30d" if network is None else network["window"][0]
    return f'network = bf.v2.load_network_performance("{window}")'
