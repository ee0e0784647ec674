"""Proposals and sync seats, compared with those that chance gives."""

import beaconframes as bf

with bf.local():
    balances = bf.load_balance_history(range(250), since=-1575)
    epochs = bf.load_epochs(since=-1575)
    blocks = bf.load_proposals(range(250), since=-1575)
    committees = bf.load_sync_committees(range(balances["epoch"].min() // 256, balances["epoch"].max() // 256 + 1))

ax = bf.plot.luck(balances, epochs, blocks, committees)
figure = bf.interactive.luck(balances, epochs, blocks, committees)
