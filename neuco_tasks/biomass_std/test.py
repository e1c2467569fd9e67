"""biomass_std: its facts, and its labels without and with a copy of the dataset."""

from neuco_tasks.ssl4eo_s12_downstream.checks import contract

test_contract = contract("biomass_std", "biomass_std__regr.csv", unit="Mg/ha", r2=-0.426)
