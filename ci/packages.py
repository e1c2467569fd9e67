"""Run a module with further packages behind all others, so that none of neuco's own is replaced.

python -m ci.packages FOLDER MODULE ARGUMENTS...
"""

from __future__ import annotations

import runpy
import sys


def main(folder: str, module: str, *arguments: str) -> None:
    sys.path.append(folder)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
