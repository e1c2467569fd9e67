"""Which records are stale: no longer what the registered method, task and protocol would give."""

from __future__ import annotations

from collections.abc import Iterable

from neuco_core.encode.run import why_not
from neuco_core.errors import NeucoError, UnknownIdError
from neuco_core.plugins.catalog import catalog, load_method, load_protocol, load_task
from neuco_core.records.fingerprint import Identity
from neuco_core.records.model import Key, Record
from neuco_core.specs import Method, Remote, Task


def nothing_to_score(method: Method, task: Task) -> str:
    """Why a method has nothing for a task's dataset, or ""."""
    try:
        return why_not(method, task.dataset)
    except NeucoError:
        return ""  # e.g. an unknown dataset: the cell will fail with the reason


class Present:
    """What is registered at this moment, to compare records with."""

    def __init__(self) -> None:
        self._identities: dict[str, Identity] = {}

    def why_stale(self, record: Record) -> str:
        """Why a record is no longer true: an input changed, its ids are gone, or it contradicts what is registered.

        A score of a method that has nothing for the task's dataset cannot be true either. What cannot be compared on
        this machine, such as a dataset that is not here, does not make a record stale.
        """
        try:
            if record.protocol not in self._identities:
                other = next(iter(self._identities.values()), None)
                self._identities[record.protocol] = Identity(load_protocol(record.protocol), other)
            identity = self._identities[record.protocol]
            taken = None if record.registered else catalog().plugins.find_alike("method", record.method)
            if taken is not None:
                return f"made from a file, but {taken.id!r} is a registered method now"
            method, task = self._method(record), load_task(f"{record.task}@{record.task_version}")
            nothing = nothing_to_score(method, task) if record.ok else ""
            if nothing:
                return f"there is nothing to score: {nothing}"
            now = identity.inputs(method, task)
            if record.method_version < method.version:
                # Its successor took the place of its code, so this is all that can be said of its embeddings.
                now |= {"method_version": record.method_version, "embeddings_from": None}
            return "; ".join(identity.changes(record, now, method, task))
        except UnknownIdError as error:
            return f"{error.noun} {error.name!r} is not registered"
        except NeucoError as error:
            return str(error)

    def why_not_compared(self, record: Record) -> str:
        """What this machine lacks to compare a record that is not stale; "" if all of it was compared."""
        identity, task = self._identities[record.protocol], load_task(f"{record.task}@{record.task_version}")
        traces = [identity.labels(task)]
        if record.registered and not self.is_replaced(record):
            traces.append(identity.embeddings(self._method(record), record.dataset))
        return next((trace.missing for trace in traces if trace.missing), "")

    def is_replaced(self, record: Record) -> bool:
        """Whether a later version of the method has taken the place of the record's, which cannot be run again."""
        return record.registered and self._method(record).version > record.method_version

    def _method(self, record: Record) -> Method:
        """The method in the record's version, or the newest one if a later version has replaced that."""
        if not record.registered:
            # Made from a file, which may be gone; what it held is in the record's inputs.
            return Method(id=record.method, files={record.dataset: Remote("file:///unknown")})
        try:
            return load_method(f"{record.method}@{record.method_version}")
        except UnknownIdError:
            newest = load_method(record.method)
            if record.method_version < newest.version:
                return newest
            raise


def stale_records(records: Iterable[Record], present: Present | None = None) -> dict[Key, str]:
    """The records that are no longer true, each with the reason."""
    present = present or Present()
    reasons = {record.key: present.why_stale(record) for record in records}
    return {key: reason for key, reason in reasons.items() if reason}
