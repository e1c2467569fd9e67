"""crops: its facts, and its labels without and with a copy of the dataset."""

from neuco_tasks.ssl4eo_s12_downstream.checks import contract

test_contract = contract("crops", "crops__regr.csv", unit="fraction", r2=-0.061)
