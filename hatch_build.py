"""Build hook: a wheel carries the generated sources of all targets (`dsv4gen/_data/generated`).

The generator of the tree being packaged runs in this process, on that tree's specs and templates and on nothing
else: DSV4GEN_* variables and extensions that happen to be installed do not count. An editable install gets nothing
generated, since a checkout builds what is missing.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

GENERATED = "dsv4gen/_data/generated"


class GenerateHook(BuildHookInterface):  # type: ignore[type-arg]
    """Generates before a wheel is put together, and removes the temporary files after."""

    _folder: str = ""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Generate all targets into a temporary folder and add it to the wheel."""
        if version == "editable":
            return
        self._folder = tempfile.mkdtemp(prefix="dsv4gen-wheel-")
        generate(Path(self.root), Path(self._folder))
        build_data["force_include"][str(Path(self._folder) / "generated")] = GENERATED

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove the temporary folder."""
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


def generate(root: Path, folder: Path) -> None:
    """Build every target of the tree at `root` into `folder/generated`."""
    for name in [name for name in os.environ if name.startswith("DSV4GEN_")]:
        del os.environ[name]
    os.environ["DSV4GEN_EXTENSIONS"] = "none"
    os.environ["DSV4GEN_CACHE_DIR"] = str(folder / "cache")
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(root))
    from dsv4gen.emit.build import Request, build
    from dsv4gen.emit.select import known_targets

    build(Request(known_targets(), out=folder / "generated"))
