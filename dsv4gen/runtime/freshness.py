"""Generated files older than their specs: noticed at load, and rebuilt where that is wanted.

A checkout rebuilds by itself, because whoever edits a spec there wants to run it; so does `DSV4GEN_REGENERATE=1`
anywhere. An installed package whose specs come from elsewhere only warns, and `DSV4GEN_REGENERATE=0` does not look at
all. Whether files are current is told by content, never by time. The generator runs in a process of its own: it is
large, and a server may not have it.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import subprocess
import sys
import warnings
from pathlib import Path

from dsv4gen.base import env, paths, stamp
from dsv4gen.base.errors import EXIT_FINDINGS, LoadError
from dsv4gen.base.target_id import TargetId
from dsv4gen.runtime import selection

_log = logging.getLogger("dsv4gen")
_GENERATOR_NEEDS = ("jinja2", "pydantic", "ruamel", "sympy", "z3")
BUILD_TIMEOUT_S = 900
#: what this process found out, for machines where the generator cannot keep its own record
_known: set[tuple[str, Path]] = set()


def ensure(family: str, wanted: TargetId) -> None:
    """Make the folder that serves `wanted` exist and be current, as far as this installation rebuilds.

    Raises:
        LoadError: the build failed; its message is the generator's.
    """
    mode = _mode()
    if mode == "ignore":
        return
    root = paths.generated()
    inputs = stamp.input_digest(paths.specs(), paths.templates())
    judged = selection.candidates(family, wanted, root)
    served = [candidate for candidate in judged if isinstance(candidate, selection.Accepted)]
    if served and is_current(served[0].target, served[0].folder, inputs):
        return
    missing = missing_generator()
    if missing:
        _log.debug("cannot tell whether %s is current: %s is not installed", root, ", ".join(missing))
        return
    target = served[0].target if served else wanted.arch
    key = (stamp.request_key(inputs, (target, "--")), root / target)
    if mode == "rebuild":
        if served:
            _log.info("%s may be older than its specs: building it", root / target)
        _run_build(target, root)
    elif served and _run_build(target, root, "--check"):
        text = f"{paths.display(root)}/{target} is older than its specs; run: dsv4gen build --target {target}"
        warnings.warn(text, RuntimeWarning, stacklevel=5)
    _known.add(key)


def is_current(target: str, folder: Path, inputs: str) -> bool:
    """Whether a finished build made exactly what a folder holds; `inputs` is the digest of what it would read today."""
    requests = ((target, "--"), (*sorted(entry.name for entry in selection.folders(folder.parent)), "--"))
    keys = [stamp.request_key(inputs, words) for words in requests]
    return any((key, folder) in _known or stamp.is_current(key, [folder]) for key in keys)


def missing_generator() -> list[str]:
    """Packages the generator needs and this installation lacks."""
    return [name for name in _GENERATOR_NEEDS if importlib.util.find_spec(name) is None]


def _mode() -> str:
    """`rebuild`, `warn`, or `ignore`, which is right inside an untouched wheel."""
    if env.REGENERATE.name in os.environ:
        return "rebuild" if env.flag(env.REGENERATE) else "ignore"
    if paths.checkout() is not None:
        return "rebuild"
    moved = any(variable.name in os.environ for variable in (env.SPECS_DIR, env.TEMPLATES_DIR, env.EXTENSIONS))
    return "warn" if moved else "ignore"


def _run_build(target: str, root: Path, *more: str) -> bool:
    """Run the generator; whether it found drift.

    Raises:
        LoadError: it failed.
    """
    command = [sys.executable, "-m", "dsv4gen", "build", "--target", target, "--out", str(root), *more]
    environment = {**os.environ, "PYTHONPATH": _python_path()}
    repair = f"run: dsv4gen build --target {target}"
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, env=environment, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LoadError(f"building {target} failed: {error}", remedy=repair) from error
    if done.returncode not in (0, EXIT_FINDINGS):
        raise LoadError(f"building {target} failed:\n{(done.stderr or done.stdout).strip()[-4000:]}", remedy=repair)
    return done.returncode == EXIT_FINDINGS


def _python_path() -> str:
    """The generator must be the one this process runs, wherever that came from."""
    return os.pathsep.join(word for word in (str(paths.PACKAGE.parent), os.environ.get("PYTHONPATH", "")) if word)
