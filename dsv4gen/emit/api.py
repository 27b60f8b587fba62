"""`dsv4gen.build(...)`: the build command as a function."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dsv4gen.base.outputs import written_path
from dsv4gen.emit.build import Built, Request
from dsv4gen.emit.build import build as run
from dsv4gen.emit.select import select_targets


def build(
    targets: str | Iterable[str] = (), families: Iterable[str] = (), out: Path | str | None = None
) -> list[Built]:
    """Generate sources and modules; writes only what changed.

    Args:
        targets: names, any spelling a driver prints, or "all"; without one, DSV4GEN_TARGET.
        families: all of them when empty.
        out: the folder that holds one folder per target; generated/ when None.

    Raises:
        SpecError, TemplateError, LintError, Problems: everything wrong with the inputs; nothing was written.
        UsageError: an unknown target or family, an empty `out`.
        OutputError: a folder that cannot be written or is not ours.
    """
    words = [targets] if isinstance(targets, str) else list(targets)
    return run(Request(select_targets(words), tuple(families), None if out is None else written_path(out, "out")))
