"""The client's side of any worker: a persistent subprocess, calls with a time limit, failures as errors."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, TypeVar

from torch import Tensor

from dsv4gen.base import errors, paths
from dsv4gen.base.errors import DsvError, EmulationError, Place
from dsv4gen.interpret import protocol
from dsv4gen.interpret.arena import Arena
from dsv4gen.interpret.protocol import Json, TensorReference

_Session = TypeVar("_Session", bound="WorkerSession")

_START_LIMIT_S = 120.0
_STDERR_TAIL = 2000


class WorkerSession:
    """A subprocess that runs Triton kernels and launch functions of generated modules on CPU tensors.

    It starts with the first call, serves any number of them, and is started afresh after a crash or a
    time-out. Tensors are changed in place, as by a launch. Not for use from several threads at once.

    Args:
        title: what messages call it, such as `the Triton interpreter`.
        program: the worker's module and what follows the client's process number.
        variables: added to the caller's environment.
        python_path: folders to import from, before the package's own.
    """

    def __init__(
        self,
        title: str,
        program: Sequence[str],
        variables: Mapping[str, str],
        *,
        python_path: Sequence[str] = (),
    ) -> None:
        self._title = title
        self._program = tuple(program)
        self._variables = dict(variables)
        self._python_path = tuple(python_path)
        self._arena = Arena()
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None

    def __enter__(self: _Session) -> _Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def call(
        self,
        module: Path,
        function: str,
        *arguments: object,
        timeout_s: float = 60.0,
        guard: bool = True,
        **keywords: object,
    ) -> Json:
        """Call a function of a module, such as a generated launch function; returns its plain value.

        Args:
            module: the generated file.
            function: its name there.
            arguments, keywords: CPU tensors (changed in place), numbers, strings, None, lists of these.
            timeout_s: seconds after which the worker is killed.
            guard: refuse every access outside the given tensors; off for functions that allocate.

        Raises:
            EmulationError: the call failed, accessed memory outside its arguments, crashed or timed out.
            DsvError: the same error, when the function itself raised one of the catalogue.
        """
        request: dict[str, Json] = {"op": "call", "module": str(module), "function": function, "guard": guard}
        return self._run({**request, **self.settings()}, arguments, keywords, timeout_s)

    def launch(
        self,
        module: Path,
        kernel: str,
        grid: Sequence[int],
        *arguments: object,
        timeout_s: float = 60.0,
        guard: bool = True,
        **keywords: object,
    ) -> None:
        """Launch a kernel directly: `kernel[grid](*arguments, **keywords)`; otherwise as `call`."""
        request: dict[str, Json] = {"op": "launch", "module": str(module), "function": kernel, "guard": guard}
        self._run({**request, "grid": list(grid), **self.settings()}, arguments, keywords, timeout_s)

    def allocate(self, size: int) -> Tensor:
        """Shared bytes used in place by calls and free of cost until touched, uint8 [size].

        For pools larger than memory: only pages that are written take any.
        """
        return self._arena.allocate(size)

    def describe(self) -> list[str]:
        """Library versions of the worker, such as `triton 3.9.0`."""
        value = self._exchange({"op": "describe"}, _START_LIMIT_S)
        assert isinstance(value, list)
        return [str(item) for item in value]

    def settings(self) -> Mapping[str, Json]:
        """What a kind of worker adds to every request."""
        return {}

    def took(self, reply: Mapping[str, Json]) -> None:
        """What a kind of worker reads from every reply, failed calls included."""

    def close(self) -> None:
        """Stop the worker and give the shared memory back."""
        self._stop()
        self._arena.close()

    def _run(
        self,
        request: Mapping[str, Json],
        arguments: Sequence[object],
        keywords: Mapping[str, object],
        timeout_s: float,
    ) -> Json:
        tensors = [value for value in (*arguments, *keywords.values()) if isinstance(value, Tensor)]
        extents, references = self._arena.place(tensors)
        by_tensor = {id(tensor): reference for tensor, reference in zip(tensors, references, strict=True)}
        message: dict[str, Json] = {
            **request,
            "arguments": [_encode(value, by_tensor) for value in arguments],
            "keywords": {name: _encode(value, by_tensor) for name, value in keywords.items()},
        }
        value = self._exchange(message, timeout_s)
        self._arena.copy_back(extents)
        return value

    def _exchange(self, message: dict[str, Json], timeout_s: float) -> Json:
        process = self._started()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(protocol.to_line(message))
            process.stdin.flush()
            line = _read_line(process.stdout, timeout_s)
        except TimeoutError:
            self._stop()
            raise EmulationError(
                f"{self._title} did not finish {_subject(message)} within {timeout_s:g} s",
                remedy="use a smaller shape, or pass a larger time limit",
            ) from None
        except BrokenPipeError:
            line = b""
        if not line:
            raise self._crash(message)
        reply = protocol.from_line(line)
        self.took(reply)
        if "error" in reply:
            raise _error_of(reply["error"], message)
        return reply["value"]

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (read after a crash, closed by _stop)
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._program[0], str(os.getpid()), *self._program[1:]],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                env=self._environment(),
            )
            self._exchange({"op": "describe"}, _START_LIMIT_S)
        return self._process

    def _environment(self) -> dict[str, str]:
        """The caller's environment with the worker's own variables, one thread, and this package importable."""
        search = [*self._python_path, str(paths.PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
        chosen = {
            **self._variables,
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(entry for entry in search if entry),
        }
        return {**os.environ, **chosen}

    def _crash(self, message: Mapping[str, Json]) -> EmulationError:
        """What the worker's end looked like."""
        process, stderr = self._process, self._stderr
        assert process is not None and stderr is not None
        status = process.wait()
        stderr.seek(0)
        tail = stderr.read().decode(errors="replace")[-_STDERR_TAIL:].strip()
        self._stop()
        cause = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
        return EmulationError(
            f"{self._title} died in {_subject(message)} ({cause}){': ' if tail else ''}{tail}",
            remedy="look for accesses outside the tensors; the next call starts a new worker",
        )

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None


def _encode(value: object, references: Mapping[int, TensorReference]) -> Json:
    return protocol.encode_value(references[id(value)] if isinstance(value, Tensor) else value)


def _subject(message: Mapping[str, Json]) -> str:
    return str(message.get("function", "its start"))


def _read_line(stream: IO[bytes], timeout_s: float) -> bytes:
    """One line, or nothing when the stream ends.

    Raises:
        TimeoutError: nothing arrived in time.
    """
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        if not selector.select(timeout_s):
            raise TimeoutError
    return stream.readline()


def _error_of(error: Json, message: Mapping[str, Json]) -> DsvError:
    """The worker's error: one of the catalogue keeps its class, anything else is an EmulationError."""
    assert isinstance(error, dict)
    kind, text, line = str(error["kind"]), str(error["message"]), error["line"]
    place = Place(Path(str(message["module"])).name, line) if isinstance(line, int) else None
    known = getattr(errors, kind, None)
    if isinstance(known, type) and issubclass(known, DsvError):
        raised: DsvError = known(text, remedy=str(error["remedy"]))
        return raised
    return EmulationError(f"{_subject(message)}: {kind}: {text}", place=place)
