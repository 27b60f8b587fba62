"""The README's picture of a report: `python -m tests.report.picture out/index.html docs/report.png gfx950/topk`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.report.browser import open_browser


def main(page: str, picture: str, place: str) -> None:
    """The window of a laptop, light colours."""
    with open_browser() as browser:
        opened = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme="light")
        opened.goto(f"{Path(page).resolve().as_uri()}#{place}")
        opened.wait_for_timeout(1000)
        opened.screenshot(path=picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
