"""heatisland_std: its facts, and its labels without and with a copy of the dataset."""

from neuco_tasks.ssl4eo_s12_downstream.checks import contract

test_contract = contract("heatisland_std", "heat-island_std__regr.csv", "heatisland_std__regr.csv", unit="K", r2=-1.157)
