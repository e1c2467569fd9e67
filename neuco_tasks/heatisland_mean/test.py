"""heatisland_mean: its facts, and its labels without and with a copy of the dataset."""

from neuco_tasks.ssl4eo_s12_downstream.checks import contract

test_contract = contract(
    "heatisland_mean", "heat-island_mean__regr.csv", "heatisland_mean__regr.csv", unit="K", r2=-0.962
)
