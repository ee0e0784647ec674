"""Withdrawals per day."""

import beaconframes as bf

with bf.local():
    withdrawals = bf.load_validator_withdrawals(range(50), since="2026-10-02")

ax = bf.plot.withdrawals(withdrawals)
figure = bf.interactive.withdrawals(withdrawals)
