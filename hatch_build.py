"""Build hook: a wheel carries the generated sources of all targets (`dsv4gen/_data/generated`) and a small extension.

The generator of the tree being packaged runs in this process, on that tree's specs and templates and on nothing
else: DSV4GEN_* variables and extensions that happen to be installed do not count. An editable install gets nothing
generated, since a checkout builds what is missing.

The extension (`dsv4gen/runtime/native_calls.c`) saves host time and nothing else depends on it. Where it cannot be
compiled the wheel is pure Python; an editable install compiles it in place.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

GENERATED = "dsv4gen/_data/generated"
EXTENSION = "dsv4gen/runtime/_native.abi3.so"


class GenerateHook(BuildHookInterface):  # type: ignore[type-arg]
    """Generates and compiles before a wheel is put together, and removes the temporary files after."""

    _folder: str = ""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Generate all targets and the extension into a temporary folder and add them to the wheel."""
        root = Path(self.root)
        if version == "editable":
            compile_extension(root, root / EXTENSION)
            return
        self._folder = tempfile.mkdtemp(prefix="dsv4gen-wheel-")
        folder = Path(self._folder)
        generate(root, folder)
        build_data["force_include"][str(folder / "generated")] = GENERATED
        if compile_extension(root, folder / "extension.so"):
            build_data["force_include"][str(folder / "extension.so")] = EXTENSION
            build_data["pure_python"] = False
            build_data["tag"] = f"cp310-abi3-{re.sub('[^a-z0-9_]', '_', sysconfig.get_platform())}"

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


def compile_extension(root: Path, out: Path) -> bool:
    """Compile the extension of the tree at `root`; where that fails, one line says what follows."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(root))
    from dsv4gen.runtime.build_native import build

    why_not = build(out, root / "dsv4gen" / "runtime" / "native_calls.c")
    if why_not:
        print(f"dsv4gen: no extension, calls take the Python way: {why_not}", file=sys.stderr)
    return not why_not
