"""The worker process: built once from the C++ beside this file, one per program.

A launch writes a request into the memory file, wakes the worker with a byte and waits for one back. A kernel
that crashes or hangs takes only the worker with it; the arrays are in the file and come back all the same.
"""

from __future__ import annotations

import mmap
import os
import platform
import select
import signal
import struct
import subprocess
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from dsv4gen.base.errors import EmulationError, raise_all
from dsv4gen.emulate.simt import protocol
from dsv4gen.emulate.simt.memory_file import Bytes, Placed, copy_in
from dsv4gen.toolchain import diagnostics, process
from dsv4gen.toolchain.host import ZIG_FLAGS, HostCompiler
from dsv4gen.toolchain.store import Store, content_key

_SOURCES = ("protocol.h", "fiber.h", "memory.h", "transactions.h", "engine.h", "engine.cpp", "worker.cpp")
_FLAGS = ("-std=c++17", "-O2", "-fno-exceptions", "-fno-rtti", "-rdynamic", "engine.cpp", "worker.cpp")
_GREETING = struct.Struct("<3I")
_PATIENCE_S = 2.0


def build_worker(compiler: HostCompiler, extra_flags: tuple[str, ...] = ()) -> Path:
    """The worker executable, from the cache or compiled now.

    Raises:
        CompileError: the compiler refused the worker's own sources.
    """
    folder = Path(__file__).parent
    sources = {name: (folder / name).read_bytes() for name in _SOURCES}
    zig = ZIG_FLAGS if compiler.kind == "zig" else ()
    flags = (*_FLAGS, *zig, *extra_flags, "-ldl", "-o", "worker")
    store = Store.open("simt-worker")
    key = content_key((*sources.values(), *flags, compiler.kind, compiler.version, platform.machine()))
    entry = store.get(key) or store.put(key, {"worker": _compile(compiler, sources, flags)}, described=" ".join(flags))
    worker = entry / "worker"
    if not os.access(worker, os.X_OK):
        worker.chmod(0o755)
    return worker


def _compile(compiler: HostCompiler, sources: Mapping[str, bytes], flags: tuple[str, ...]) -> bytes:
    with process.private_folder("simt") as work:
        for name, content in sources.items():
            (work / name).write_bytes(content)
        outcome = process.run([*compiler.command, *flags], work)
        if not outcome.succeeded:
            raise_all(diagnostics.compile_errors(outcome, what="the SIMT worker", file="worker.cpp"))
        return (work / "worker").read_bytes()


class Worker:
    """A running worker and the memory file it shares with us; `wave` is its program's."""

    def __init__(self, executable: Path, program: Path) -> None:
        self._owner = os.getpid()
        self._file = _memory_file()
        self._size = 0
        self.memory: Bytes = np.empty(0, np.uint8)
        self._grow(protocol.ARRAYS_OFFSET)
        self._process = _start([str(executable), str(self._file), str(program)], self._file)
        self.close = weakref.finalize(self, _shut_down, self._process, self._file, self._owner)
        self.wave = self._greet()

    def is_ours(self) -> bool:
        """False in a forked child of the process that started the worker, and after the worker's death."""
        return self._owner == os.getpid() and self._process.poll() is None

    def write(self, request: bytes, regions: Sequence[Placed]) -> None:
        """Put a request and its arrays into the file."""
        self._grow(max((region.file_offset + region.page_bytes for region in regions), default=0))
        self.memory[: len(request)] = np.frombuffer(request, np.uint8)
        for region in regions:
            copy_in(region, self.memory)

    def report(self) -> bytes:
        """The report of the last launch."""
        return self.memory[protocol.REQUEST_BYTES :][: protocol.REPORT_BYTES].tobytes()

    def launch(self, timeout_s: float) -> int | None:
        """Run the request in the file: None when it ended, else the signal that ended the worker."""
        assert self._process.stdin is not None
        os.write(self._process.stdin.fileno(), b"L")
        if self._read(1, timeout_s):
            return None
        if self._process.poll() is None:
            # The worker's handler of this signal records which thread was running.
            self._process.send_signal(signal.SIGTERM)
        try:
            return -self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return -self._process.wait()

    def _greet(self) -> int:
        """The wave in the worker's greeting, which also proves that both sides speak one protocol."""
        greeting = self._read(_GREETING.size, timeout_s=60)
        if len(greeting) != _GREETING.size:
            self._process.kill()
            _, complaint = self._process.communicate()
            self.close()
            raise EmulationError(f"the SIMT worker cannot serve: {complaint.decode(errors='replace')}")
        wave, *sizes = _GREETING.unpack(greeting)
        if sizes != [protocol.REQUEST_BYTES, protocol.REPORT_BYTES]:
            self.close()
            raise EmulationError("protocol.h and protocol.py of the SIMT worker differ")
        return int(wave)

    def _grow(self, size: int) -> None:
        """Make the memory file at least `size` bytes long."""
        if size > self._size:
            os.ftruncate(self._file, size)
            self._size = size
            self.memory = np.frombuffer(mmap.mmap(self._file, size), np.uint8)

    def _read(self, count: int, timeout_s: float) -> bytes:
        """Up to `count` bytes from the worker; fewer when it has died or the time is up."""
        assert self._process.stdout is not None
        stream = self._process.stdout.fileno()
        poller = select.poll()  # select() takes no descriptor above 1023, and a session may keep hundreds of workers
        poller.register(stream, select.POLLIN)
        return os.read(stream, count) if poller.poll(timeout_s * 1000) else b""


def _start(command: list[str], file: int) -> subprocess.Popen[bytes]:
    """Start a worker; in its own session, so that an interrupt typed at a terminal reaches only us."""
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(file,),
            start_new_session=True,
        )
    except OSError as error:
        os.close(file)
        raise EmulationError(
            f"the SIMT worker cannot be started: {error.strerror}",
            remedy="set DSV4GEN_CACHE_DIR to a folder from which programs may run",
        ) from error


def _shut_down(process: subprocess.Popen[bytes], file: int, owner: int) -> None:
    """End the worker and give its memory back; a forked child leaves its parent's worker alone."""
    if os.getpid() == owner:
        process.kill()
        process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    os.close(file)


def _memory_file() -> int:
    """A file without a name, in memory where the system offers that."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("dsv4gen-simt", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
