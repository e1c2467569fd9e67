"""``python -m neuco_core.cli`` for where the console script is not on the path."""

from neuco_core.cli import main

main()
