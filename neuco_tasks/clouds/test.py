"""clouds: its facts, and its labels without and with a copy of the dataset."""

from neuco_tasks.ssl4eo_s12_downstream.checks import contract

test_contract = contract("clouds", "clouds_reg__regr.csv", unit="%", r2=-2.293)
