"""Every shipped plugin has a card, a test with assertions, and a row in the documentation."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from neuco_core import list_datasets, list_methods, list_tasks
from tests.content.tables import PAGES, in_tree

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = sorted(
    path.parent for package in ("tasks", "methods") for path in ROOT.glob(f"neuco_{package}/*/__init__.py")
)
PARTS = ("**What.**", "**Source.**", "**Licence.**", "**Caveats.**", "**Citation.**")


@pytest.mark.parametrize("plugin", PLUGINS, ids=[f"{path.parent.name}/{path.name}" for path in PLUGINS])
def test_a_plugin_has_a_whole_card_and_tests_that_assert_something(plugin: Path) -> None:
    text = (plugin / "README.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {plugin.name}\n")
    assert [part for part in PARTS if part not in text] == []
    tree = ast.parse((plugin / "test.py").read_text(encoding="utf-8"))
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    assert len(tests) >= 3 or any("contract(" in ast.unparse(n) for n in tree.body if isinstance(n, ast.Assign))
    assert all(any(isinstance(node, ast.Assert | ast.With) for node in ast.walk(test)) for test in tests)


@pytest.mark.parametrize("page", PAGES)
def test_documented_table_is_up_to_date(page: str) -> None:
    """If this fails: `python -m tests.content.tables docs`."""
    assert (ROOT / "docs" / page).read_text(encoding="utf-8") == PAGES[page]()


def test_every_plugin_is_in_a_table_with_a_card_that_is_there() -> None:
    text = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in PAGES)
    for spec in (*in_tree(list_datasets()), *in_tree(list_tasks()), *in_tree(list_methods())):
        assert f"[`{spec.id}`](" in text
    for plugin in PLUGINS:
        assert f"](../{plugin.parent.name}/{plugin.name}/README.md)" in text
