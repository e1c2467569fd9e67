"""Local copies of whole datasets: the user says where one is, and its files are used instead of downloads."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from neuco_core.errors import DataError, UnpinnedError, UsageError
from neuco_core.fetch.cache import config_dir, exclusive, write_json
from neuco_core.fetch.fetch import cached, find_pin, is_local, user_pins, verify
from neuco_core.fields import ID
from neuco_core.files import read_strictly
from neuco_core.plugins.catalog import list_tasks
from neuco_core.specs import Dataset, Remote, Task

LARGEST = 10_000_000  # bytes


def links_file() -> Path:
    return config_dir() / "links.json"


def variable(dataset_id: str) -> str:
    """The environment variable that points to a dataset's local copy; ids that share one cannot both be registered."""
    return "NEUCO_DATASET_" + dataset_id.upper().replace("-", "_")


def dataset_root(dataset_id: str) -> Path | None:
    """The folder of the user's local copy, if there is one; the variable wins over the links file."""
    source: object = variable(dataset_id)
    chosen = os.environ.get(variable(dataset_id))
    if not chosen:
        source, chosen = links_file(), read_links().get(dataset_id)
    if not chosen:
        return None
    root = Path(chosen).expanduser().absolute()
    if not root.is_dir():
        hint = f"Correct it with `neuco data link {dataset_id} FOLDER` or `neuco data link {dataset_id} --remove`"
        if source == variable(dataset_id):
            hint = f"Correct or unset {variable(dataset_id)}"
        raise DataError(f"the local copy of {dataset_id!r} is not a folder", where=source, got=root, hint=hint)
    return root


def without_labels(tasks: Sequence[Task]) -> list[Task]:
    """The tasks whose labels nobody has confirmed here: no checksum is known, and no copy of the dataset is linked."""
    return [task for task in tasks if find_pin(task.source) is None and dataset_root(task.dataset) is None]


def require_labels(board: str, tasks: Sequence[Task], suite: str = "") -> None:
    """Raise if no task of a board has its labels here: one command brings them all, by a ``suite`` that has them."""
    if len(without_labels(tasks)) == len(tasks):
        chosen = f"--suite {suite}" if suite else " ".join(task.id for task in tasks)
        hint = f"Run `neuco data pin {chosen}`, or `neuco data link DATASET FOLDER` to use your copy"
        raise DataError(f"no labels of {board} are on this machine", hint=hint)


def vouched_by_user(task: Task) -> str:
    """How the user alone vouches for a task's labels; "" if a plugin or the registry knows their checksum."""
    pin = find_pin(task.source)
    if pin is None:
        return "from your own copy, unverified" if dataset_root(task.dataset) is not None else ""
    return "pinned by you" if task.source.sha256 is None and pin.source == str(user_pins()) else ""


def linked_file(dataset_id: str, remote: Remote) -> Path | None:
    """The remote's file in the dataset's local copy, checked if its hash is known.

    None if there is no copy, or if the copy lacks the file and it can be fetched and verified instead.
    """
    relative_paths = [tail for url in remote.urls if not is_local(url) for tail in tails(url)]
    root = dataset_root(dataset_id) if relative_paths else None
    if root is None:
        return None
    pin = find_pin(remote)
    path = next((root / relative for relative in relative_paths if (root / relative).is_file()), None)
    if path is not None and pin is not None:
        verify(path, pin, f"{path} (the local copy of {dataset_id!r})")
    if path is None and pin is None:
        hint = f"Put it there, run `neuco data link {dataset_id} FOLDER` to use another folder, or "
        hint += "`neuco data pin TASK` to download and confirm it"
        raise UnpinnedError(f"{relative_paths[0]} is not in this local copy of {dataset_id!r}", where=root, hint=hint)
    return path


def labels_here(task: Task) -> bool:
    """Whether a task's labels can be read and nothing is fetched: from a package, a linked copy or the cache."""
    remote = task.source
    return is_local(remote.url) or linked_file(task.dataset, remote) is not None or cached(remote) is not None


def tails(url: str) -> Iterator[str]:
    """The relative paths where a local copy may hold a file, the most specific first."""
    parts = urlsplit(url)
    hugging_face = parts.scheme == "hf"
    path = url.partition("@")[2].partition("/")[2] if hugging_face else unquote(parts.path)
    names = [name for name in path.split("/") if name]
    if ".." in names:
        return
    if hugging_face:
        yield "/".join(names)
        return
    if "resolve" in names[:-2]:  # a Hugging Face address: …/resolve/<revision>/<path in the dataset>
        names = names[names.index("resolve") + 2 :]
    for start in range(len(names)):
        yield "/".join(names[start:])


def read_links() -> dict[str, str]:
    """All links by dataset id."""
    path = links_file()
    if not path.exists():
        return {}
    return read_strictly(path, dict[str, str], "a file of links", most=LARGEST, hint="Repair or delete it")


def require_copy(dataset: Dataset, folder: Path) -> None:
    """Raise unless a folder holds a file of the dataset's, or its cubes."""
    folder = folder.expanduser().absolute()
    remotes = [*dataset.archives, *(task.source for task in list_tasks(dataset=dataset.id))]
    paths = [tail for remote in remotes for url in remote.urls if not is_local(url) for tail in tails(url)]
    if not any((folder / path).is_file() for path in paths) and not _has_cubes(dataset, folder):
        expected = f"{paths[0]}, another of its files, or its cubes" if paths else "its cubes"
        hint = "Give the folder in which these paths start"
        raise DataError(f"this folder is no copy of {dataset.id!r}", where=folder, expected=expected, hint=hint)


def add_link(dataset_id: str, folder: Path) -> None:
    """Remember a local copy."""
    if not ID.fullmatch(dataset_id):
        raise UsageError("bad dataset id", got=repr(dataset_id), hint="Run `neuco datasets` for the ids")
    folder = folder.expanduser().absolute()
    if not folder.is_dir():
        raise UsageError("not a folder", where=folder, hint="Give the folder that holds the dataset's files")
    with exclusive(links_file().parent):
        write_json(links_file(), {**read_links(), dataset_id: str(folder)})


def _has_cubes(dataset: Dataset, folder: Path) -> bool:
    """Whether the dataset's own code finds samples there; it is told by the variable, as users tell it."""
    before = os.environ.get(variable(dataset.id))
    os.environ[variable(dataset.id)] = str(folder)
    try:
        return len(dataset) > 0
    except Exception:  # whatever a dataset's own code makes of a folder that is not its own
        return False
    finally:
        if before is None:
            del os.environ[variable(dataset.id)]
        else:
            os.environ[variable(dataset.id)] = before


def remove_link(dataset_id: str) -> bool:
    """Forget a local copy; the files stay. False if there was none."""
    with exclusive(links_file().parent):
        links = read_links()
        if links.pop(dataset_id, None) is None:
            return False
        write_json(links_file(), links)
    return True
