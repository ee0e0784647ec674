"""The cards of a report: the word of each follows its stated rule, for frames made by hand."""

import pytest

from beaconframes.reports.figures import CARDS, list_cards

from .test_verdict import ETH, frames

RULES = {
    "income": (
        "good: at most 1 % less than average validators, without luck; look: at most 5 %; act: more"
    ),
    "rate": "good: at most 25 % below the yield index; look: at most 50 %; act: more",
    "effectiveness": (
        "good: at most 1.0 points below the network; look: at most 5.0 points; act: more"
    ),
    "lost": (
        "good: at most 1.5 times what average validators missed; look: at most 3 times; act: more"
    ),
    "online": "good: at most 0 % of the active validators offline; look: at most 1 %; act: more",
}
WEI = ETH // 1000
"""A thousandth of the income of average validators, which is 1 ETH."""


def make(marks=(), statuses=("active_online",) * 4, parts=None, **summary):
    """Return frames with numbers of the answer, and of the comparison with average validators."""
    compared = {"average_wei": ETH, "difference_wei": 0, "missed_avoidable_wei": 0}
    compared |= {"sync_luck_wei": 0, "average_missed_wei": 0}
    found = frames(marks, statuses, **(compared | (parts or {})))
    columns = {name: [value] for name, value in summary.items()}
    answer = found["summary"].to_dict(as_series=False) | columns
    return found | {"summary": type(found["summary"])(answer, strict=False)}


def read(name, made):
    """Return one card of frames."""
    (card,) = (each for each in list_cards(made) if each.name == name)
    return card


def test_each_card_states_its_rule():
    assert RULES == {card.name: card.rule for card in CARDS}


@pytest.mark.parametrize(
    ("parts", "word"),
    [
        ({"difference_wei": 5 * WEI}, "good"),
        ({"difference_wei": -10 * WEI}, "good"),
        ({"difference_wei": -101 * WEI // 10}, "look"),
        ({"difference_wei": -50 * WEI}, "look"),
        ({"difference_wei": -501 * WEI // 10}, "act"),
        ({"difference_wei": -300 * WEI, "proposal_luck_wei": -300 * WEI}, "good"),
        ({"difference_wei": -300 * WEI, "sync_luck_wei": -260 * WEI}, "look"),
        ({"difference_wei": -300 * WEI, "execution_wei": -240 * WEI}, "act"),
        # Luck does not hide what was missed, either.
        ({"difference_wei": 0, "execution_wei": 300 * WEI}, "act"),
        ({"difference_wei": 0, "sync_luck_wei": None}, "unknown"),
        ({"average_wei": 0}, "unknown"),
    ],
)
def test_the_word_of_income_does_not_depend_on_luck(parts, word):
    assert word == read("income", make(parts=parts)).word


@pytest.mark.parametrize(
    ("own", "index", "word", "comparison"),
    [
        (0.0303, 0.0313, "good", "yield index 3.13 %, difference \u22120.10 points"),
        # Of the printed numbers, 3.02 and 3.14: of those that are not rounded, it is -0.11.
        (0.030249, 0.031351, "good", "yield index 3.14 %, difference \u22120.12 points"),
        (0.03, 0.04, "good", "yield index 4.00 %, difference \u22121.00 points"),
        (0.0299, 0.04, "look", "yield index 4.00 %, difference \u22121.01 points"),
        (0.02, 0.04, "look", "yield index 4.00 %, difference \u22122.00 points"),
        (0.0199, 0.04, "act", "yield index 4.00 %, difference \u22122.01 points"),
        (-0.01, 0.04, "act", "yield index 4.00 %, difference \u22125.00 points"),
        (None, 0.04, "unknown", "yield index 4.00 %"),
        (0.03, None, "unknown", "yield index unknown"),
    ],
)
def test_the_yearly_rate_beside_the_yield_index(own, index, word, comparison):
    """Both on the same basis as the difference: nothing else is on the card."""
    card = read("rate", make(apr_on_effective=own, index_apr=index))

    assert (word, comparison) == (card.word, card.comparison)


@pytest.mark.parametrize(
    ("own", "network", "word"),
    [
        (0.98, 0.97, "good"), (0.96, 0.9699, "good"), (0.96, 0.9701, "look"),
        (0.92, 0.9699, "look"), (0.92, 0.9701, "act"), (None, 0.97, "unknown"),
        (0.97, None, "unknown"),
    ],
)  # fmt: skip
def test_the_effectiveness_beside_that_of_the_network(own, network, word):
    made = make(effectiveness=own, network_effectiveness=network, included_rate=0.99)

    card = read("effectiveness", made)

    assert word == card.word
    number, unit = ("99.00 %", "of votes included (uptime)") if own is None else (
        f"{100 * own:.2f} %", "of vote rewards",
    )  # fmt: skip
    assert (number, unit) == (card.number, card.unit)


@pytest.mark.parametrize(
    ("lost", "missed", "mark", "word"),
    [
        (1_500_000, WEI, None, "good"), (1_500_001, WEI, None, "look"),
        (3_000_000, WEI, None, "look"), (3_000_001, WEI, None, "act"),
        (3_000_001, WEI, "at least", "act"), (1_500_001, WEI, "at least", "unknown"),
        (3_000_001, WEI, "incomplete", "unknown"), (1_000_000, None, None, "unknown"),
        (1_000_000, 0, None, "unknown"), (1_000_000, -WEI, None, "unknown"),
    ],
)  # fmt: skip
def test_losses_beside_those_of_average_validators(lost, missed, mark, word):
    """A loss of "at least" more than the limit is more in any case."""
    marks = [("summary", "lost_gwei", mark, "load_proposals")] if mark else []

    card = read("lost", make(marks, parts={"average_missed_wei": missed}, lost_gwei=lost))

    assert word == card.word
    assert (mark or "") in card.number
    known = f"{missed // 10**13 / 10**5:.5f} ETH" if missed is not None else "unknown"
    assert f"average validators {known}".replace("-", "\u2212") == card.comparison


@pytest.mark.parametrize(
    ("online", "offline", "word"),
    [(3, 0, "good"), (99, 1, "look"), (98, 1, "act"), (2, 1, "act"), (0, 1, "act"), (0, 0, "")],
)
def test_validators_that_are_offline_now(online, offline, word):
    """Of a source that does not state who is online, it is unknown."""
    # A validator that exits, or is slashed, has duties until its exit.
    statuses = ("active_online",) * online + ("exiting_offline",) * offline + ("exited",)

    card = read("online", make(statuses=statuses))

    if word:
        assert (str(online), f"{offline} offline", word) == (
            card.number, card.comparison, card.word,
        )  # fmt: skip
    else:
        assert ("unknown", "unknown offline", "unknown") == (
            card.number, card.comparison, card.word,
        )  # fmt: skip


def test_a_number_that_is_not_complete_has_a_mark_and_no_word():
    """The mark of the number, or of what it is compared with."""
    own = [("summary", "net_income_wei", "incomplete", "load_produced_blocks")]
    card = read("income", make(own))
    assert ("3.00000 ETH (incomplete)", "unknown") == (
        f"{card.number[:7]} ETH {card.number[8:]}",
        card.word,
    )

    compared = [("comparison", None, "incomplete", "load_yield_index")]
    card = read("income", make(compared))
    assert ("3.00000", "unknown") == (card.number, card.word)
    assert card.comparison.endswith("without payments of builders (incomplete)")


def test_consensus_income_stands_for_income_that_is_unknown():
    made = make(
        [("summary", "net_income_wei", "unknown", "load_produced_blocks")], net_income_wei=None
    )

    card = read("income", made)

    assert ("2.00000", "ETH, consensus layer only") == (card.number, card.unit)
