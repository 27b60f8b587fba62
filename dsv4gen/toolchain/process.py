"""Run one program in a private folder, and say in words how it ended.

Commands are argument lists and never pass through a shell, so a path may hold blanks, quotes or `$`. Programs
run inside the folder that holds their input, hence the commands shown to users have relative names.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dsv4gen.base.paths import PACKAGE

DEFAULT_TIMEOUT_S = 600.0

# Variables that silently change what a compiler reads or how it is called.
_STRAY_VARIABLES = frozenset(
    {
        "CPATH",
        "C_INCLUDE_PATH",
        "CPLUS_INCLUDE_PATH",
        "CCC_OVERRIDE_OPTIONS",
        "CLANG_CONFIG_FILE_SYSTEM_DIR",
        "NVCC_APPEND_FLAGS",
        "NVCC_PREPEND_FLAGS",
    }
)
_SIGNAL_IN_TEXT = re.compile(r"(?:due to|by) signal (\d+)")
_UNNAMED_SIGNAL_IN_TEXT = re.compile(r"unable to execute command: (Killed|Segmentation fault|Aborted)")
_SIGNAL_BY_WORD = {"Killed": signal.SIGKILL, "Segmentation fault": signal.SIGSEGV, "Aborted": signal.SIGABRT}


@dataclass(frozen=True)
class Outcome:
    """How one program ended: `status` is its exit status, or minus the signal that ended it."""

    command: tuple[str, ...]
    status: int
    output: str
    seconds: float
    timed_out: bool = False

    @property
    def succeeded(self) -> bool:
        """True when the program ended by itself with status 0."""
        return self.status == 0 and not self.timed_out

    @property
    def ended_by_itself(self) -> bool:
        """True when neither a signal nor the time limit ended the program."""
        return self.signal_number is None and not self.timed_out

    @property
    def shown_command(self) -> str:
        """The command quoted for a shell, with the program's own name instead of its path."""
        program = Path(self.command[0]).name
        return shlex.join([program, *self.command[1:]])

    @property
    def signal_number(self) -> int | None:
        """The signal that ended the program or one of its children, None when there was none."""
        if self.status < 0:
            return -self.status
        if self.status > 128 and self.status - 128 in _known_signals():
            return self.status - 128
        if self.status == 0:
            return None
        named = _SIGNAL_IN_TEXT.search(self.output)
        if named:
            return int(named[1])
        word = _UNNAMED_SIGNAL_IN_TEXT.search(self.output)
        return int(_SIGNAL_BY_WORD[word[1]]) if word else None

    @property
    def reason(self) -> str:
        """The end in words: `killed by signal 11 (SIGSEGV)`, `exit status 1`, `no end after 600 s`."""
        if self.timed_out:
            return f"did not end within {self.seconds:.0f} s and was stopped"
        number = self.signal_number
        if number is None:
            return f"exit status {self.status}"
        name = signal.Signals(number).name if number in _known_signals() else "unknown"
        hint = ", often for lack of memory" if number == signal.SIGKILL else ""
        return f"killed by signal {number} ({name}{hint})"


def run(
    command: Sequence[str],
    folder: Path,
    *,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    variables: Mapping[str, str] | None = None,
) -> Outcome:
    """Run a program in `folder` with its temporary files there; both output streams are kept as one text.

    Args:
        variables: environment variables added to the caller's.

    Raises:
        OSError: the program cannot be started.
    """
    started = time.monotonic()
    with subprocess.Popen(
        list(command),
        cwd=folder,
        env={**_environment(), **(variables or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as child:
        try:
            raw, _ = child.communicate(timeout=timeout_s)
            timed_out = False
        except subprocess.TimeoutExpired:
            # A compiler driver leaves its children running unless the whole group is stopped.
            os.killpg(child.pid, signal.SIGKILL)
            raw, _ = child.communicate()
            timed_out = True
    seconds = time.monotonic() - started
    return Outcome(tuple(command), child.returncode, raw.decode("utf-8", "replace"), seconds, timed_out)


@contextmanager
def private_folder(purpose: str) -> Iterator[Path]:
    """A new folder that only this user can read, removed at the end."""
    with tempfile.TemporaryDirectory(prefix=f"dsv4gen-{purpose}-") as name:
        yield Path(name)


def own_package_variables() -> dict[str, str]:
    """Variables with which a new Python finds this very package, installed or not."""
    inherited = os.environ.get("PYTHONPATH")
    root = str(PACKAGE.parent)
    return {"PYTHONPATH": f"{root}{os.pathsep}{inherited}" if inherited else root}


def _environment() -> dict[str, str]:
    """The caller's variables without those that bend compilers; messages in English."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in _STRAY_VARIABLES and not name.startswith("TRITON_")
    }
    # Every program runs in a private folder and keeps its temporary files there.
    return {**kept, "LC_ALL": "C", "TMPDIR": "."}


def _known_signals() -> frozenset[int]:
    return frozenset(int(number) for number in signal.Signals)
