"""The subprocess: `python -m dsv4gen.interpret.worker CLIENT_PID`, requests on stdin, replies on stdout.

TRITON_INTERPRET is read when `@triton.jit` decorates, so the client sets it in this process's environment and
the patch is applied before any module is loaded. Whatever kernels print goes to stderr.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

from dsv4gen.base.errors import DsvError
from dsv4gen.interpret import patch, protocol
from dsv4gen.interpret.arena import map_segment
from dsv4gen.interpret.protocol import Json, TensorReference, Value


class Modules:
    """Generated modules by path and content: a rewritten file is loaded anew, also within the same second."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[str, str], ModuleType] = {}

    def load(self, path: str) -> ModuleType:
        """The module a file holds now; compiled from its text, never from cached bytecode."""
        text = Path(path).read_bytes()
        key = (path, hashlib.sha256(text).hexdigest())
        if key not in self._loaded:
            module = ModuleType(f"dsv4gen_interpreted_{key[1][:16]}")
            module.__file__ = path
            sys.modules[module.__name__] = module
            exec(compile(text, path, "exec"), module.__dict__)
            self._loaded[key] = module
        return self._loaded[key]


class Worker:
    """Serves requests until its input ends."""

    def __init__(self, client: int) -> None:
        self.client = client
        self.guard = patch.AddressGuard()
        patch.apply(self.guard)
        self.modules = Modules()
        self.segments: dict[int, Tensor] = {}

    def serve(self, requests: BinaryIO, replies: BinaryIO) -> None:
        """Answer one line with one line."""
        for line in requests:
            replies.write(protocol.to_line(self.answer(protocol.from_line(line))))
            replies.flush()

    def answer(self, request: dict[str, Json]) -> Json:
        """The reply to one request; a failure becomes an error reply."""
        try:
            return {"value": protocol.encode_value(self._perform(request))}
        except Exception as error:
            return {"error": _describe(error, str(request.get("module", "")))}
        finally:
            self.guard.allow(None)

    def _perform(self, request: dict[str, Json]) -> object:
        if request["op"] == "describe":
            return [f"{name} {importlib.metadata.version(name)}" for name in ("triton", "torch", "numpy")]
        function = getattr(self.modules.load(str(request["module"])), str(request["function"]))
        references: list[TensorReference] = []
        arguments = [self._argument(value, references) for value in _list(request["arguments"])]
        keywords = {name: self._argument(value, references) for name, value in _dict(request["keywords"]).items()}
        if request["guard"]:
            self.guard.allow([self._range(reference) for reference in references])
        if request["op"] == "launch":
            function = function[tuple(_list(request["grid"]))]
        return _call(function, arguments, keywords)

    def _argument(self, value: Json, references: list[TensorReference]) -> object:
        decoded: Value = protocol.decode_value(value)
        if not isinstance(decoded, TensorReference):
            return decoded
        references.append(decoded)
        tensor = torch.empty(0, dtype=getattr(torch, decoded.dtype))
        storage = self._segment(decoded).untyped_storage()
        return tensor.set_(storage, decoded.low // tensor.element_size(), decoded.shape, decoded.strides)

    def _segment(self, reference: TensorReference) -> Tensor:
        """The mapping of a segment, made when it is first seen."""
        if reference.segment not in self.segments:
            mapped = map_segment(self.client, reference.descriptor, reference.segment_bytes)
            self.segments[reference.segment] = mapped
        return self.segments[reference.segment]

    def _range(self, reference: TensorReference) -> tuple[int, int]:
        base = self._segment(reference).data_ptr()
        return base + reference.low, base + reference.high


def _call(function: Callable[..., object], arguments: list[object], keywords: dict[str, object]) -> object:
    result = function(*arguments, **keywords)
    return None if isinstance(result, torch.Tensor) else result


def _describe(error: Exception, module: str) -> Json:
    """Kind, message and the last line of the generated module on the way to the failure."""
    chain: list[BaseException] = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    root = chain[-1]
    frames = [frame for link in chain for frame in traceback.extract_tb(link.__traceback__)]
    lines = [frame.lineno for frame in frames if frame.filename == module]
    message = root.message if isinstance(root, DsvError) else str(root)
    remedy = root.remedy if isinstance(root, DsvError) else ""
    return {
        "kind": type(root).__name__,
        "message": message,
        "line": lines[-1] if lines else None,
        "remedy": remedy,
    }


def _list(value: Json) -> list[Any]:
    assert isinstance(value, list)
    return value


def _dict(value: Json) -> dict[str, Json]:
    assert isinstance(value, dict)
    return value


def main() -> None:
    """Serve on the standard streams; prints of kernels are kept off the reply stream."""
    np.seterr(all="ignore")
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    Worker(int(sys.argv[1])).serve(sys.stdin.buffer, replies)


if __name__ == "__main__":
    main()
