"""The worker process: built once from the C++ beside this file, one per program, restarted after a death.

A launch writes a request into the memory file, wakes the worker with a byte and waits for one back. A kernel that
crashes or hangs takes only the worker with it; the arrays are in the file and come back all the same.
"""

from __future__ import annotations

import mmap
import os
import select
import signal
import struct
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from dsv4gen.base.errors import EmulationError, raise_all
from dsv4gen.emulate.simt.memory_file import PAGE, Bytes
from dsv4gen.toolchain import diagnostics, process
from dsv4gen.toolchain.host import ZIG_FLAGS, HostCompiler
from dsv4gen.toolchain.store import Store, content_key

_SOURCES = ("protocol.h", "fiber.h", "memory.h", "engine.h", "engine.cpp", "worker.cpp")
_FLAGS = ("-std=c++17", "-O2", "-fno-exceptions", "-fno-rtti", "-rdynamic", "engine.cpp", "worker.cpp")
_GREETING = struct.Struct("<3I")
_PATIENCE_S = 2.0


def build_worker(compiler: HostCompiler, *, extra_flags: tuple[str, ...] = ()) -> Path:
    """The worker executable, from the cache or compiled now.

    Raises:
        CompileError: the compiler refused the worker's own sources.
    """
    folder = Path(__file__).parent
    sources = {name: (folder / name).read_bytes() for name in _SOURCES}
    zig = ZIG_FLAGS if compiler.kind == "zig" else ()
    flags = (*_FLAGS, *zig, *extra_flags, "-ldl", "-o", "worker")
    store = Store.open("simt-worker")
    key = content_key((*sources.values(), *flags, compiler.kind, compiler.version))
    entry = store.get(key)
    if entry is None:
        with process.private_folder("simt") as work:
            for name, content in sources.items():
                (work / name).write_bytes(content)
            outcome = process.run([*compiler.command, *flags], work)
            if not outcome.succeeded:
                raise_all(diagnostics.compile_errors(outcome, what="the SIMT worker", file="worker.cpp"))
            entry = store.put(key, {"worker": (work / "worker").read_bytes()}, described=" ".join(flags))
    worker = entry / "worker"
    worker.chmod(0o755)
    return worker


class Worker:
    """A running worker and the memory file it shares with us."""

    def __init__(self, executable: Path, program: Path, request_bytes: int, report_bytes: int) -> None:
        self._file = _memory_file()
        self._size = 0
        self.memory: Bytes = np.empty(0, np.uint8)
        self.grow(-(-(request_bytes + report_bytes) // PAGE) * PAGE)
        self._process = subprocess.Popen(
            [str(executable), str(self._file), str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(self._file,),
        )
        greeting = self._read(_GREETING.size, timeout_s=60)
        if len(greeting) != _GREETING.size:
            status = self._process.wait()
            self.close()
            raise EmulationError(f"the SIMT worker did not start (exit status {status})")
        self.wave, *sizes = _GREETING.unpack(greeting)
        if sizes != [request_bytes, report_bytes]:
            self.close()
            raise EmulationError("the SIMT worker and program.py disagree about the protocol")

    def grow(self, size: int) -> None:
        """Make the memory file at least `size` bytes long; `memory` then shows it as bytes."""
        if size <= self._size:
            return
        os.ftruncate(self._file, size)
        self._size = size
        self.memory = np.frombuffer(mmap.mmap(self._file, size), np.uint8)

    def launch(self, timeout_s: float) -> int | None:
        """Run the request in the file: None when it ended, else the signal that ended the worker."""
        assert self._process.stdin is not None
        os.write(self._process.stdin.fileno(), b"L")
        if self._read(1, timeout_s):
            return None
        if self._process.poll() is None:
            # The handler of this signal records which thread was running.
            self._process.send_signal(signal.SIGTERM)
        try:
            return -self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return -self._process.wait()

    def close(self) -> None:
        """End the worker and give the memory back; arrays that were copied out stay valid."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _read(self, count: int, timeout_s: float) -> bytes:
        """Up to `count` bytes from the worker; fewer when it has died or the time is up."""
        assert self._process.stdout is not None
        stream = self._process.stdout.fileno()
        ready, _, _ = select.select([stream], [], [], timeout_s)
        return os.read(stream, count) if ready else b""


def _memory_file() -> int:
    """A file without a name, in memory where the system offers that."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("dsv4gen-simt", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
