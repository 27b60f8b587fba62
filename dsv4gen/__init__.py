"""dsv4gen: a code-generation compiler for the DeepSeek-V4 inference kernels on AMD and NVIDIA GPUs.

load        the best kernels of a family for a GPU, as a callable object
prewarm     the same, and everything its calls need is compiled and loaded
explain     which launches a call makes and why
targets, families   what is generated here
build       generate sources from specs and templates
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["__version__", "build", "explain", "families", "load", "prewarm", "targets"]

if TYPE_CHECKING:
    from dsv4gen.emit.api import build
    from dsv4gen.runtime.load import explain, families, load, prewarm, targets

#: name -> module; a name's module is imported when the name is first used
_WHERE = {
    "load": "dsv4gen.runtime.load",
    "prewarm": "dsv4gen.runtime.load",
    "explain": "dsv4gen.runtime.load",
    "targets": "dsv4gen.runtime.load",
    "families": "dsv4gen.runtime.load",
    "build": "dsv4gen.emit.api",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'dsv4gen' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
