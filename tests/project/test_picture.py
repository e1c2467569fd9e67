"""The README's picture of a board is of the board as it is. ``python -m tests.project.test_picture`` takes it anew."""

from __future__ import annotations

import hashlib
import re
import tempfile
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from neuco_core.site import page_data
from neuco_core.site.write import write_site
from tests.registry import copy_registry

PICTURE = Path(__file__).parents[2] / "docs" / "leaderboard.png"
BOARD = "boards/olinda/index.html"
MADE_FROM = "made-from"


def digest_of_page(registry: Path, out: Path) -> str:
    """The hash of what the page shows: its HTML and its styles."""
    write_site(page_data.gather(registry, ["olinda"]), out)
    shown = [(out / BOARD).read_text(), *(path.read_text() for path in sorted((out / "assets").glob("*.css")))]
    return hashlib.sha256(re.sub(r"\s+", " ", "".join(shown)).encode()).hexdigest()


def test_the_picture_is_of_the_board_as_it_is(committed_registry: Path, tmp_path: Path) -> None:
    with Image.open(PICTURE) as picture:
        assert picture.info.get(MADE_FROM) == digest_of_page(committed_registry, tmp_path / "site"), (
            "run python -m tests.project.test_picture, and look at the picture"
        )


if __name__ == "__main__":
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        site = Path(name, "site")
        about = PngInfo()
        about.add_text(MADE_FROM, digest_of_page(copy_registry(Path(name, "registry")), site))
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 640})
        page.goto((site / BOARD).as_uri())
        page.screenshot(path=PICTURE)
        browser.close()
        with Image.open(PICTURE) as image:
            image.convert("P", palette=Image.Palette.ADAPTIVE).save(PICTURE, pnginfo=about, optimize=True)
