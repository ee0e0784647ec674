"""Formulas of rewards and penalties."""

from __future__ import annotations

from beaconframes.consensus import rewards as formulas

ETH = 10**9


class TestFormulas:
    """Numbers worked out by hand, with mainnet's size and constants."""

    constants = formulas.RewardConstants()

    def test_base_reward_is_stake_over_its_root(self):
        """34 million ETH at stake: 64 x 10^9 / isqrt(3.4 x 10^16) = 64e9 / 184390889 = 347."""
        assert 347 == formulas.compute_base_reward_per_increment(self.constants, 34_000_000 * ETH)

    def test_a_sync_seat_and_its_proposer_share_the_reward(self):
        """347 x 34e6 x 2 // 64 // 32 // 512 = 22502 a seat, x 8 // 56 to the proposer."""
        seat, proposer = formulas.compute_sync_rewards(347, 34_000_000, slots=32, seats=512)

        assert (22_502, 3_214) == (seat, proposer)

    def test_a_slashing_pays_reporter_and_proposer(self):
        """32 ETH / 4096 = 7812500 gwei; as much for the reporter, an eighth of it for including."""
        amounts = formulas.compute_slashing_amounts(32 * ETH, 4096, 4096)

        assert (7_812_500, 976_562, 6_835_938) == amounts

    def test_a_proposer_earns_an_eighth_of_the_votes(self):
        """(64 - 8) x 64 / 8 = 448: 10 votes of 32 increments, all flags: 32 x 347 x 54 x 10."""
        assert 13_384 == formulas.compute_inclusion_rewards(32 * 347 * 54 * 10)

    def test_a_third_slashed_takes_the_whole_balance(self):
        """A third slashed takes the whole balance; a small part takes little."""
        total = 3_200 * ETH

        assert 32 * ETH == formulas.compute_correlation_penalty(
            self.constants, 32 * ETH, total * 34 // 100, total, multiplier=3
        )
        # 3 x 64e9 // 3200 = 60000000 an increment.
        assert 60_000_000 * 32 == formulas.compute_correlation_penalty(
            self.constants, 32 * ETH, 64 * ETH, total, multiplier=3
        )

    def test_correlation_before_electra(self):
        """32 x 3 x 64e9 // 3200e9 = 1.92, rounded down to whole increments: 1 ETH."""
        penalty = formulas.compute_correlation_penalty(
            self.constants, 32 * ETH, 64 * ETH, 3_200 * ETH, multiplier=3, is_electra=False
        )

        assert 1 * ETH == penalty
