"""Template lines in what the emulator says about a kernel that the runtime compiled.

The runtime compiles one entry of a generated source, so a line counts in that slice; from there to the line of the
whole file, and on to the template by the map beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from dsv4gen.base import paths
from dsv4gen.base.errors import ManifestError
from dsv4gen.base.target_id import parse
from dsv4gen.render.source_map import SourceMap
from dsv4gen.runtime.sources import slice_source

_PLACE = re.compile(r"\b(\w+\.hip):(\d+)(?::\d+)?")


def describer(target: str) -> Callable[[str, str], str]:
    """For `Gpu.describe`: names the kernel, and puts the template's line behind every line of a generated source."""
    arch = parse(target).arch

    def describe(symbol: str, problems: str) -> str:
        def both(found: re.Match[str]) -> str:
            origin = _origin(arch, found[1], symbol, int(found[2]))
            return f"{found[0]} = {origin}" if origin else found[0]

        return f"{symbol}: {_PLACE.sub(both, problems)}"

    return describe


def _origin(arch: str, name: str, symbol: str, line: int) -> str:
    """The template line, or an empty text for what no generated folder explains."""
    for folder in _folders(arch):
        try:
            lines = slice_source(name, (folder / name).read_text(encoding="utf-8"), [symbol]).lines
            data = json.loads((folder / "maps" / f"{name}.json").read_text(encoding="utf-8"))
            origin = SourceMap.from_json(data).origin(lines[line - 1])
        except (OSError, ValueError, KeyError, IndexError, ManifestError):
            continue
        return str(origin or "")
    return ""


def _folders(arch: str) -> Iterator[Path]:
    """The folder of the architecture itself, then any that lists it among the devices it also serves."""
    root = paths.generated()
    yield root / arch
    for manifest in sorted(root.glob("*/manifest.json")):
        try:
            also = json.loads(manifest.read_text(encoding="utf-8"))["target"]["also"]
        except (OSError, ValueError, KeyError):
            continue
        if arch in {parse(name).arch for name in also}:
            yield manifest.parent
