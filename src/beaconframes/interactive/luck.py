"""Expected and actual proposals and sync seats, in plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes import charts
from beaconframes.interactive import figure
from beaconframes.text import for_plotly

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narwhals.stable.v2.typing import IntoFrame
    from plotly.graph_objects import Figure

    from beaconframes.calendar import Chain


def luck(
    balances: IntoFrame,
    epochs: IntoFrame,
    proposals: IntoFrame | None = None,
    committees: IntoFrame | None = None,
    *,
    by: str | Sequence[str] = (),
    validators: IntoFrame | None = None,
    level: float = 0.95,
    chain: Chain | str | None = None,
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    caption: str | None = None,
    **kwargs: Any,
) -> Figure:
    """Draw whether validators proposed more blocks, or had more sync seats, than expected.

    *balances* is the result of ``bf.load_balance_history(...)``, and *epochs* that of
    ``bf.load_epochs(...)`` over the same epochs: the expected numbers follow from the share of the
    effective balance in every epoch. *proposals* is the result of ``bf.load_proposals(...)``,
    *committees* that of ``bf.load_sync_committees(...)``; pass one or both. Each number is
    shown in percent of the expected one. The range behind it contains *level* of all cases if only
    chance decides; a marker outside of it is red.

    By default, all validators count together. *by* are the columns of *balances* that group them,
    such as ``"validator_index"``. More than 10 rows are ranked, the luckiest first. The caption
    states the epochs and committees that count: an epoch needs a row in both frames, a committee
    the epoch that selected it.
    *validators*, *level* and *chain* are as in ``bf.analysis.proposal_luck`` and
    ``bf.analysis.sync_luck``, which return the numbers.

    *title*, *figsize* and *caption* are those of every chart, as `beaconframes.interactive` states.

    *kwargs* go to ``Figure.update_layout``.
    """
    chart = charts.luck(
        balances,
        epochs,
        proposals,
        committees,
        by=by,
        validators=validators,
        level=level,
        chain=chain,
        escape=for_plotly,
    )
    return figure.build_figure(chart, kwargs, title=title, figsize=figsize, caption=caption)
