"""An outside package with an encoder, whose code tests change to see whether its key follows."""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from neuco_core.plugins.code_key import code_key

FILES = {
    "__init__.py": '"""A package."""\n',
    "plugin.py": """
from neuco_core import Method, hookimpl

def make():
    from {name}.encoder import Encoder
    return Encoder()

@hookimpl
def neuco_methods():
    yield Method(id="{name}", title="Old words", encoder=make)
""",
    "encoder.py": '''
"""The encoder."""
from neuco_core.encoders import resize
from . import tables
from .deep.inner import FACTOR

class Encoder:
    """Encodes."""
    def encode(self, batch):
        return resize(batch.values, 2, 2) * FACTOR + tables.OFFSET + helper(1)

def helper(x):
    # a comment
    return x + 1
''',
    "tables.py": "OFFSET = 3\n",
    "deep/__init__.py": "",
    "deep/inner.py": "FACTOR = 2.0\n",
    "unused.py": "NOTHING = 1\n",
    "test.py": "from {name}.encoder import Encoder\n",
}
NUMBER = itertools.count()


class Package:
    """An outside package on the Python path; ``key`` imports it anew, as a later process would."""

    def __init__(self, folder: Path) -> None:
        self.name = f"outside{next(NUMBER)}"
        self.folder = folder / self.name
        for file, text in FILES.items():
            self.write(file, text.replace("{name}", self.name))

    def write(self, file: str, text: str) -> None:
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def edit(self, file: str, there: str, instead: str) -> None:
        text = (self.folder / file).read_text()
        assert there in text
        self.write(file, text.replace(there, instead))

    def rename(self, file: str, other: str) -> Path:
        return (self.folder / file).rename(self.folder / other)

    def key(self, pick: Callable[[Any], Any] = lambda module: module.make, home: str = "") -> str | None:
        for name in [name for name in sys.modules if name.partition(".")[0] == self.name]:
            del sys.modules[name]
        importlib.invalidate_caches()
        return code_key(pick(importlib.import_module(f"{self.name}.plugin")), home)
