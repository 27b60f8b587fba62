"""Compiles the extension of the short way (`native_calls.c`), where there is a C compiler and Python's headers.

Installing dsv4gen does it by itself; `python -m dsv4gen.runtime.build_native` does it again, in place. The extension
keeps to Python's stable ABI, so one file serves every version from 3.10.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from dsv4gen.runtime.native import NAME, SOURCE, digest

FLAGS = ("-O2", "-shared", "-fPIC", "-fvisibility=hidden")


def build(out: Path, source: Path = SOURCE) -> str:
    """Compile into a file, which is written aside and renamed; returns why that was not possible, or nothing."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "this Python has no stable ABI"
    compiler = find_compiler()
    if not compiler:
        return "no C compiler: neither CC nor cc, gcc or clang"
    headers = Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").is_file():
        return f"no Python.h in {headers}"
    aside = out.with_name(f"{out.name}.{os.getpid()}")
    macro = f'-DSOURCE="{digest(source.read_bytes())}"'
    command = [*compiler, *FLAGS, f"-I{headers}", macro, "-o", str(aside), str(source)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return f"{shlex.join(compiler)} failed: {(done.stderr or done.stdout).strip()}"
        aside.replace(out)
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    finally:
        aside.unlink(missing_ok=True)
    return ""


def find_compiler() -> list[str]:
    """The C compiler's command: CC's, or the first of the usual names."""
    words = shlex.split(os.environ.get("CC", ""))
    found = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)
    return words or ([found] if found else [])


def main() -> int:
    """Build beside the source, and say so."""
    why_not = build(SOURCE.with_name(NAME))
    print(f"not built, calls take the Python way: {why_not}" if why_not else f"built {SOURCE.with_name(NAME)}")
    return 1 if why_not else 0


if __name__ == "__main__":
    sys.exit(main())
