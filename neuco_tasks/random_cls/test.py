"""random_cls: its facts, and its labels without and with a copy of the dataset."""

from neuco_tasks.ssl4eo_s12_downstream.checks import contract

test_contract = contract(
    "random_cls", "random_cls__cls.csv", kind="classification", metric="f1", unit="", r2=None, control=True
)
