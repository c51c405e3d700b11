"""Links of the pages lead to files and headings that exist, and every picture and page is used."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import EVERY_PAGE, PAGES, ROOT, Page
from tests.screenshots.picture import MOST_BYTES

LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")
PICTURES = ROOT / "resources" / "screenshots"
LINES = 150  # of README at most


def targets(page: Page) -> list[str]:
    """What a page links to, outside its blocks."""
    return ["".join(found) for found in LINK.findall(page.prose)]


@pytest.mark.parametrize("page", EVERY_PAGE, ids=str)
def test_links_lead_to_files_and_headings_that_exist(page: Page) -> None:
    broken = []
    for target in targets(page):
        if target.startswith("https://"):
            continue
        name, _, heading = target.partition("#")
        file = (page.path.parent / name).resolve() if name else page.path
        if not file.exists() or (heading and heading not in Page(file).anchors):
            broken.append(target)
    assert broken == []


def test_readme_is_short_and_leads_to_every_page() -> None:
    readme = PAGES[0]
    assert len(readme.text.splitlines()) <= LINES
    linked = {target.partition("#")[0] for target in targets(readme)}
    assert {str(page) for page in PAGES[1:]} - linked == set()


def test_every_picture_is_small_and_on_a_page() -> None:
    shown = {(page.path.parent / name).resolve() for page in PAGES for name in targets(page)}
    pictures = list(PICTURES.iterdir())
    assert len(pictures) <= 8
    assert [picture.name for picture in pictures if picture not in shown] == []
    assert [picture.name for picture in pictures if picture.stat().st_size > MOST_BYTES] == []
