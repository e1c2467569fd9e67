"""No page has a serious fault by axe-core's rules. ``make test-axe`` gets it with npm; without it this is skipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from neuco_core.env import registry_dir
from neuco_core.site.page_data import gather
from neuco_core.site.write import write_site
from tests.site.made_pages import made_source

MINI, GEO = "boards/mini/index.html", "boards/geobench-2/index.html"
TABS = ("", "#compare", "#size", "#tasks", "#robustness", "#predict-map", "#reading", "#submit")
PAGES = (
    "index.html",
    *(f"{MINI}{tab}" for tab in TABS),
    "boards/mini/task/mini_clouds.html",
    "boards/mini/method/pca.html",
    "boards/neuco-real/index.html",
    "boards/neuco-paper-table-4/index.html",
    *(
        f"{GEO}{tab}"
        for tab in ("", "#far=show&est=show", "#geobench-capabilities", "#geobench-profiles", "#predict-map")
    ),
    "boards/geobench-2/method/clay_v1_base-2ce4a907.html",
    "boards/geobench-2/method/dofa_base_patch16_224-114be1f0.html",
    "boards/geobench-2/task/everwatch.html",
    "boards/large/index.html",
    "boards/large/index.html#robustness",
)
SERIOUS = (
    "axe.run().then(report => report.violations.filter(v => ['serious', 'critical'].includes(v.impact))"
    ".map(v => [v.id, v.nodes.length, v.nodes[0].html.slice(0, 200), v.nodes[0].failureSummary]))"
)


@pytest.fixture(scope="module")
def axe(root: Path) -> str:
    path = root / "build/axe/node_modules/axe-core/axe.min.js"
    if not path.is_file():
        # Justified: npm is no part of setting up this project, and its network may be away.
        pytest.skip("axe-core: not installed; `make test-axe` gets it with npm")
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def real(axe: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("real")
    chosen = [s for s in gather(registry_dir()) if s.published or s.id in ("mini", "neuco-real")]
    write_site([*chosen, made_source(400, 11, "large", replicates=50)], folder)
    return folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_pages_have_no_serious_fault(browser: Any, axe: str, real: Path, scheme: str, width: int) -> None:
    # The page's own policy would refuse axe; what it looks at is the same.
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    faults = {}
    for path in PAGES:
        page.goto(f"file://{real}/{path}")
        page.reload()  # another "#" alone is no other page
        if path == MINI:
            page.evaluate("neuco.open(neuco.data.rows[0], 0, null)")
            page.locator("#cell").wait_for()
            page.evaluate(axe)
            faults["a cell"] = page.evaluate(SERIOUS)
            page.keyboard.press("Escape")
        if "/method/" in path or "/task/" in path:
            page.evaluate("document.querySelectorAll('details').forEach(folded => { folded.open = true; })")
        page.evaluate(axe)
        faults[path] = page.evaluate(SERIOUS)
    context.close()
    assert {path: serious for path, serious in faults.items() if serious} == {}
