"""A process that compiles one kernel of the demo family through the cache, and prints what it got. No torch.

Usage: python -m tests.runtime.worker TARGET_FOLDER LIBRARY_FOLDER SYMBOL
With WORKER_USER set it first becomes that user, as far as it may.
"""

from __future__ import annotations

import fcntl  # noqa: F401 - the other user may not be able to read the standard library
import json
import os
import sys
from pathlib import Path

from dsv4gen.base.manifest import read_manifest
from dsv4gen.runtime import libraries
from dsv4gen.runtime.cache import Cache
from dsv4gen.runtime.driver_backend import kernel_source
from dsv4gen.runtime.selection import Accepted
from tests.runtime.stubs import found


def main(folder: Path, library_folder: Path, symbol: str) -> None:
    """Compile or fetch, once."""
    if "WORKER_USER" in os.environ and os.getuid() == 0:
        os.setuid(int(os.environ["WORKER_USER"]))
    compiler = found(library_folder / "libnvrtc.so.13")
    libraries.find = lambda kind: (compiler,) if kind is libraries.NVRTC else ()
    manifest = read_manifest(folder)
    accepted = Accepted(manifest.target["name"], folder, manifest, manifest.target["arch"])
    code = kernel_source("demo", accepted, Cache.open(), None).get(symbol)
    print(json.dumps({"origin": code.origin, "digest": code.digest}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
