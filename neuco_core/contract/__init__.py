"""The contract that every task and method keeps, and the start of a new one."""
