"""Debian's Chromium without a window, driven by playwright; it asks nobody for anything by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.tools import need_module, need_tool

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


@contextmanager
def open_browser() -> Iterator[Any]:
    """The browser; fails or skips where it or its driver is missing."""
    program = need_tool("chromium")
    need_module("playwright")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=FLAGS.split())
        try:
            yield browser
        finally:
            browser.close()
