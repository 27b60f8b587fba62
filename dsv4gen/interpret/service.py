"""What every worker program does: read requests, map the client's memory, call functions of modules, answer.

How a module's kernels run is a subclass's own: `worker` has Triton's interpreter, `dsv4gen.emulate.triton` runs
compiled machine code. Whatever kernels print goes to stderr.
"""

from __future__ import annotations

import hashlib
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

import torch
from torch import Tensor

from dsv4gen.base.errors import DsvError
from dsv4gen.interpret import protocol
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


class Service:
    """Serves requests until its input ends."""

    def __init__(self, client: int) -> None:
        self.client = client
        self.modules = Modules()
        self.segments: dict[int, Tensor] = {}

    def describe(self) -> list[str]:
        """What the client should know of this worker, such as versions; nothing of a plain one."""
        return []

    def enter(self, request: Mapping[str, Json], tensors: Mapping[str, TensorReference]) -> None:
        """Called before a function runs, with the tensors of its arguments by name (or position)."""

    def leave(self) -> Mapping[str, Json]:
        """Called after a request, failed or not: what to add to the reply."""
        return {}

    def address(self, reference: TensorReference) -> tuple[int, int]:
        """The addresses [low, high) in this process that a tensor's elements span."""
        base = self._segment(reference).data_ptr()
        return base + reference.low, base + reference.high

    def serve(self, requests: BinaryIO, replies: BinaryIO) -> None:
        """Answer one line with one line."""
        for line in requests:
            replies.write(protocol.to_line(self.answer(protocol.from_line(line))))
            replies.flush()

    def answer(self, request: dict[str, Json]) -> Json:
        """The reply to one request; a failure becomes an error reply."""
        try:
            reply: dict[str, Json] = {"value": protocol.encode_value(self._perform(request))}
        except Exception as error:
            reply = {"error": _describe(error, str(request.get("module", "")))}
        return {**reply, **self.leave()}

    def _perform(self, request: dict[str, Json]) -> object:
        if request["op"] == "describe":
            return self.describe()
        function = getattr(self.modules.load(str(request["module"])), str(request["function"]))
        references: dict[str, TensorReference] = {}
        named = [(f"argument {number}", value) for number, value in enumerate(_list(request["arguments"]))]
        arguments = [self._argument(name, value, references) for name, value in named]
        keywords = {name: self._argument(name, value, references) for name, value in _dict(request["keywords"]).items()}
        self.enter(request, references)
        if request["op"] == "launch":
            function = function[tuple(_list(request["grid"]))]
        return _call(function, arguments, keywords)

    def _argument(self, name: str, value: Json, references: dict[str, TensorReference]) -> object:
        decoded: Value = protocol.decode_value(value)
        if not isinstance(decoded, TensorReference):
            return decoded
        references[name] = decoded
        tensor = torch.empty(0, dtype=getattr(torch, decoded.dtype))
        storage = self._segment(decoded).untyped_storage()
        return tensor.set_(storage, decoded.low // tensor.element_size(), decoded.shape, decoded.strides)

    def _segment(self, reference: TensorReference) -> Tensor:
        """The mapping of a segment, made when it is first seen."""
        if reference.segment not in self.segments:
            mapped = map_segment(self.client, reference.descriptor, reference.segment_bytes)
            self.segments[reference.segment] = mapped
        return self.segments[reference.segment]


def serve_standard_streams(service: Service) -> None:
    """Serve on stdin and stdout; prints of kernels are kept off the reply stream."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    service.serve(sys.stdin.buffer, replies)


def _call(function: Callable[..., object], arguments: list[object], keywords: dict[str, object]) -> object:
    """The function's plain value; a launch returns a compiled kernel or a tensor, which nobody asked for."""
    result = function(*arguments, **keywords)
    plain = result is None or isinstance(result, (bool, int, float, str, list, tuple))
    return result if plain else None


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
