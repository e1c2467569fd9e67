"""The folder of a site: knows what it has written there, so that a later build can remove what is left over."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from neuco_core.fields import ID

LIST = ".neuco-site.json"
# The names of all files that a site can have.
NAMES = re.compile(
    rf"index\.html|\.nojekyll|assets/[a-z][a-z0-9_-]{{0,63}}\.(css|js|svg)|boards/{ID.pattern}/"
    rf"(index\.html|board\.json|board\.csv|card\.png|(method|task)/{ID.pattern}\.html|method/{ID.pattern}\.js"
    rf"|task/{ID.pattern}-[0-9]{{1,2}}\.png)"
)


class OutputFolder:
    """Files of one build. ``finish`` removes those of the build before that were not written again.

    A file is removed only if it is in the list that the build before left, and still holds the bytes that were
    written then: what somebody else put there, or changed, stays.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.before = read_list(path / LIST)
        self.written: dict[str, str] = {}

    def write(self, name: str, content: str | bytes) -> None:
        data = content.encode() if isinstance(content, str) else content
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        self.written[name] = sha256(data).hexdigest()

    def finish(self) -> None:
        for name in self.before.keys() - self.written.keys():
            self._remove(name)
        listed = json.dumps(self.written, indent=0, sort_keys=True)
        (self.path / LIST).write_text(f"{listed}\n", encoding="utf-8")

    def _remove(self, name: str) -> None:
        path = self.path / name
        # A folder may have become a link: nothing outside of this one is removed.
        if path.is_symlink() or not path.is_file() or not path.resolve().is_relative_to(self.path.resolve()):
            return
        if sha256(path.read_bytes()).hexdigest() != self.before[name]:
            return
        path.unlink()
        for parent in path.relative_to(self.path).parents:
            if parent != Path():
                with suppress(OSError):  # it is not empty
                    (self.path / parent).rmdir()


def read_list(path: Path) -> dict[str, str]:
    """The list of the build before; what cannot be read lists nothing, and then nothing is removed.

    The list is a file like any other, and may have been edited: what no site can have written is left out.
    """
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(listed, dict):
        return {}
    return {name: str(value) for name, value in listed.items() if NAMES.fullmatch(name)}
