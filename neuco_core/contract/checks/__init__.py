"""What the checks of the contract do; ``neuco_core.contract.builtin`` lists them with what each asks for, and why."""
