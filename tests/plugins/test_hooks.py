"""The plugin manual is true: its examples run, and docs/plugins.md says what hookspecs.py says."""

from __future__ import annotations

import inspect
import types
from pathlib import Path

import click
import pytest

import neuco_core
from neuco_core import hookspecs
from neuco_core.plugins.discovery import NOUNS
from neuco_core.plugins.loading import hooks_of

HOOKS = {name: item for name, item in vars(hookspecs).items() if name.startswith("neuco_")}


def example(hook: str) -> str:
    """The code in a hook's docstring, which follows its first paragraph."""
    text = inspect.getdoc(HOOKS[hook]) or ""
    return text[text.index("@hookimpl") :]


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_has_an_example_that_runs(hook: str) -> None:
    module = types.ModuleType("example_of_hook")
    names = {name: getattr(neuco_core, name) for name in neuco_core.__all__}
    vars(module).update(names, click=click)
    exec(compile(example(hook), hook, "exec"), vars(module))
    caller, _ = hooks_of(module)[hook]
    noun = hook.removeprefix("neuco_").removesuffix("s")
    specs = [spec for result in caller() for spec in result]
    assert specs
    assert all(isinstance(spec, NOUNS.get(noun, click.Command)) for spec in specs)


def test_there_is_a_hook_for_every_noun() -> None:
    assert set(HOOKS) == {f"neuco_{noun}s" for noun in NOUNS} | {"neuco_commands"}


def test_the_manual_is_short() -> None:
    assert len(Path(hookspecs.__file__).read_text().splitlines()) < 120


@pytest.mark.parametrize("hook", HOOKS)
def test_the_documentation_shows_every_hook_with_its_example(hook: str, root: Path) -> None:
    text = (root / "docs" / "plugins.md").read_text()
    sentence = (inspect.getdoc(HOOKS[hook]) or "").splitlines()[0]
    assert f"### `{hook}()`\n\n{sentence}" in text
    assert example(hook) in text
    assert f"`neuco.{hook.removeprefix('neuco_')}`" in text
