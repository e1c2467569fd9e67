"""random_reg: its facts, and its labels without and with a copy of the dataset."""

from neuco_tasks.ssl4eo_s12_downstream.checks import contract

test_contract = contract("random_reg", "random_reg__regr.csv", unit="1", r2=None, control=True)
