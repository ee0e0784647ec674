"""Proposals and sync seats, compared with the expected numbers."""

import beaconframes as bf

with bf.open():
    balances = bf.load_balance_history(range(250), since=-1575)
    epochs = bf.load_epochs(since=-1575)
    blocks = bf.load_proposals(range(250), since=-1575)
    periods = range(balances["epoch"].min() // 256, balances["epoch"].max() // 256 + 2)
    committees = bf.load_sync_committees(periods)

ax = bf.plot.luck(balances, epochs, blocks, committees)
figure = bf.interactive.luck(balances, epochs, blocks, committees)
