"""Balance and effective balance of a validator."""

import beaconframes as bf

with bf.open():
    balances = bf.load_balance_history(3, since=-450)

ax = bf.plot.balances(balances, show="balance")
figure = bf.interactive.balances(balances, show="balance")
