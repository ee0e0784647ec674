"""Withdrawals per day."""

import beaconframes as bf

days = {"since": "2026-10-02", "until": "2026-10-06"}
with bf.open():
    withdrawals = bf.load_validator_withdrawals(range(50), **days)

ax = bf.plot.withdrawals(withdrawals, **days)
figure = bf.interactive.withdrawals(withdrawals, **days)
