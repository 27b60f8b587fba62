"""The report as one HTML page that needs nothing but itself.

The matrix is written as HTML, so it reads and prints without scripts; details are drawn from the JSON in the page.
The texts of sources are the bulk of it, so they travel compressed, and the browser inflates them when one is opened.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2

from dsv4gen.base.outputs import write_whole
from dsv4gen.report.model import STAGES, WRONG, Cell, Report, Stage

_PAGE = Path(__file__).with_name("page")
_STYLES = ("base.css", "matrix.css", "detail.css", "source.css", "print.css")
_SCRIPTS = ("dom.js", "tables.js", "charts.js", "listing.js", "source.js", "panels.js", "search.js", "main.js")
#: what a state is called and what it means, in the order of the legend
STATES = {
    "yes": ("done", "done for what is generated now"),
    "part": ("in part", "done, with a reservation that the cell names"),
    "no": ("not done", "not done yet; the cell names the command"),
    "never": ("not here", "needs hardware that was not at hand"),
    "stale": ("out of date", "done for an older generation"),
    "failed": ("failed", "a check did not pass"),
}


def write_html(report: Report, folder: Path) -> Path:
    """Write `index.html` into a folder, which is made when missing; the file.

    Raises:
        OutputError: it cannot be written.
    """
    file = folder / "index.html"
    write_whole(file, page(report).encode())
    return file


def page(report: Report) -> str:
    """The page's text."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_PAGE),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja").render(
        report=report,
        stages=STAGES,
        states=STATES,
        done=Counter(stage.name for cell in report.cells for stage in cell.stages if stage.state in ("yes", "part")),
        counts=Counter(cell.state for cell in report.cells if cell.state in WRONG),
        wrong=_attention(report),
        styles=[_part(name) for name in _STYLES],
        scripts=[_part(name) for name in _SCRIPTS],
        data=_script_json(report.to_json()),
        texts=_script_json(_packed(report.texts)),
    )


def _attention(report: Report) -> list[tuple[Cell, Stage, str]]:
    """What is wrong: cell, stage, and the names of all stages of the cell that say the same."""
    found: dict[tuple[str, str, str], list[tuple[Cell, Stage]]] = {}
    for cell in report.cells:
        for stage in cell.wrong:
            key = (cell.id, stage.text, stage.reasons[0] if stage.reasons else "")
            found.setdefault(key, []).append((cell, stage))
    return [(*same[0], ", ".join(stage.name for _, stage in same)) for same in found.values()]


def _part(name: str) -> str:
    return (_PAGE / name).read_text(encoding="utf-8")


def _script_json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _packed(texts: Mapping[str, str]) -> dict[str, str]:
    """Text by name -> base64 of its gzip; no time in it, so that equal reports are equal pages."""
    return {
        name: base64.b64encode(gzip.compress(text.encode(), compresslevel=9, mtime=0)).decode()
        for name, text in texts.items()
    }
