"""Specs are refused at creation, with the field, the value and what is allowed."""

from __future__ import annotations

import dataclasses
import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest

from neuco_core import Baseline, BoardKind, Dataset, Method, Metric, Protocol, Remote, Suite, Task
from neuco_core.errors import SpecError
from neuco_core.specs import to_json

SHA = "ab" * 32


class Chameleon(str):
    """Text that says what one wants to hear: text and numbers with methods of their own are refused."""

    def startswith(self, *_: object) -> bool:
        return True

    def replace(self, *_: object) -> str:
        return "mine"


REMOTE = Remote("https://example.org/x.csv", sha256=SHA)


task = partial(Task, id="soil", dataset="mini", kind="regression", source=REMOTE)
method = partial(Method, id="mean", encoder=dict)
suite = partial(Suite, id="s", tasks={"soil": 1})
metric = partial(Metric, id="m", function=max)
baseline = partial(Baseline, method="averaging", score=0.5, tolerance=0.1)
protocol = partial(Protocol, name="p")
remote = partial(Remote, url="https://example.org/x.csv")
dataset = partial(Dataset, id="mini")
board = partial(BoardKind, id="b", rank=max)


@pytest.mark.parametrize(
    ("make", "field", "value", "allowed"),
    [
        (task, "id", "Soil", "a-z, 0-9, _ and -"),
        (task, "id", "", "a-z, 0-9, _ and -"),
        (task, "id", "../soil", "a-z, 0-9, _ and -"),
        (task, "id", "x" * 65, "1 to 64"),
        (task, "id", "soil\n", "a-z, 0-9, _ and -"),
        (task, "id", None, "a-z, 0-9, _ and -"),
        (task, "dataset", "a b", "a-z, 0-9, _ and -"),
        (task, "kind", "nonsense", "regression, classification"),
        (task, "source", "x.csv", "a Remote"),
        (task, "version", 0, "at least 1"),
        (task, "version", True, "a whole number"),
        (task, "tags", "forest", "a list of non-empty strings"),
        (task, "tags", ("a", "a"), "no duplicates"),
        (task, "tags", ("a", 3), "non-empty strings"),
        (task, "columns", (), "at least one"),
        (task, "baseline", 0.3, "a Baseline or None"),
        (task, "control", "no", "True or False"),
        (task, "loader", "module.function", "a function or None"),
        (task, "title", "a\ud800b", "expected a string"),
        (task, "tags", ("a\udfff",), "non-empty strings"),
        (method, "params", {"rate": float("nan")}, "strings mapped to"),
        (metric, "kinds", ("foo",), "regression, classification"),
        (metric, "upper", float("inf"), "a finite number"),
        (remote, "url", "https://[bad", "https://"),
        (method, "files", {"mini": "file.csv"}, "strings mapped to Remote"),
        (method, "files", {"mini": REMOTE}, "either files or an encoder"),
        (method, "encoder", None, "either files or an encoder"),
        (method, "params", {"depth": [1]}, "strings mapped to"),
        (method, "tolerance", -1e-4, "at least 0"),
        (method, "tolerance", 0.5, "below 0.02"),
        (dataset, "cubes", 3, "a function or None"),
        (suite, "tasks", {}, "at least one task"),
        (suite, "tasks", {"soil": 0}, "versions of at least 1"),
        (suite, "tasks", ["soil"], "a mapping"),
        (baseline, "score", float("nan"), "a finite number"),
        (baseline, "tolerance", -0.1, "at least 0"),
        (remote, "url", "ftp://example.org/x", "https://, http://, hf://, s3://, file://, pkg://"),
        (remote, "url", 3, "a string"),
        (remote, "mirrors", ("x.csv",), "https://"),
        (remote, "mirrors", "https://example.org", "a list of non-empty strings"),
        (remote, "sha256", "abc", "64 lower-case hexadecimal digits"),
        (remote, "size", -1, "at least 0"),
        (protocol, "name", "Neuco 2025", "an id"),
        (protocol, "k", 0, "at least 1"),
        (protocol, "test_size", 1.0, "above 0 and below 1"),
        (protocol, "lr", 0, "above 0"),
        (protocol, "select", "first", "best-on-test, last"),
        (protocol, "standardize", 1, "True or False"),
        (protocol, "seed", 2**32, "below 2^32"),
        (task, "id", Chameleon("soil"), "a-z, 0-9, _ and -"),
        (task, "title", Chameleon("Soil"), "a string"),
        (task, "kind", Chameleon("regression"), "regression, classification"),
        (task, "columns", (Chameleon("ph"),), "non-empty strings"),
        (method, "params", {Chameleon("size"): 1}, "strings mapped to"),
        (method, "params", {"size": Chameleon("1")}, "strings mapped to"),
        (suite, "tasks", {Chameleon("soil"): 1}, "a mapping"),
        (protocol, "name", Chameleon("p"), "an id"),
        (remote, "url", Chameleon("https://example.org/x.csv"), "a string"),
        (remote, "sha256", Chameleon(SHA), "64 lower-case hexadecimal digits"),
        (task, "version", type("Two", (int,), {})(2), "at least 1"),
        (board, "rank", "no-colon", "a function, or its name as 'package.module:function'"),
        (board, "options", {"seed": None}, "a mapping"),
    ],
)
def test_a_wrong_value_is_refused_with_field_value_and_what_is_allowed(
    make: Any, field: str, value: Any, allowed: str
) -> None:
    with pytest.raises(SpecError) as caught:
        make(**{field: value})
    text = str(caught.value)
    assert allowed in text
    assert "\n" not in text
    named = {"encoder": "files", "mirrors": "url"}.get(field, field)
    assert field in text or named in text


@pytest.mark.parametrize(
    "spec", [task(), method(params={"a": 1}), dataset(), suite(), baseline(), protocol(), remote()]
)
def test_specs_are_frozen_hashable_and_picklable(spec: Any) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.title = "other"
    assert hash(spec) == hash(dataclasses.replace(spec))
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_a_number_of_numpy_is_a_number() -> None:
    assert protocol(lr=np.float64(0.5)).lr == 0.5
    assert protocol().with_(lr=np.float64(0.5)).name == "p+lr=0.5"


def test_the_metric_follows_from_the_kind() -> None:
    assert task().metric == "r2"
    assert task(kind="classification").metric == "f1"


def test_what_was_given_to_a_spec_cannot_change_it_later() -> None:
    params = {"depth": 1}
    spec = method(params=params)
    params["depth"] = 2
    assert spec.params["depth"] == 1
    with pytest.raises(TypeError):
        spec.params["depth"] = 3  # type: ignore[index]


def test_json_shows_functions_by_name() -> None:
    shown = to_json(method(encoder=test_json_shows_functions_by_name))
    assert shown["encoder"].endswith("test_specs:test_json_shows_functions_by_name")
    assert shown["params"] == {}
