"""Compile Triton kernels without a GPU, as a program of its own.

    python -m dsv4gen.toolchain.triton_worker REQUESTS FOLDER

REQUESTS is a JSON list. For request number n the worker writes into FOLDER either `n.json` (what to know about the
code object) with `n.code`, `n.asm` and `n.log` beside it, or `n.json` with an `error`. `n.json` comes last, so that
a request without it is the one that ended the worker.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

# What a launch needs; sizes in bytes.
_METADATA = ("name", "num_warps", "num_ctas", "shared", "global_scratch_size", "profile_scratch_size", "warp_size")


class _Modules:
    """Generated modules by path, run from their text and never from cached bytecode."""

    def __init__(self) -> None:
        self._loaded: dict[str, ModuleType] = {}

    def load(self, path: str) -> ModuleType:
        if path not in self._loaded:
            module = ModuleType(f"dsv4gen_compiled_{len(self._loaded)}")
            module.__file__ = path
            sys.modules[module.__name__] = module
            exec(compile(Path(path).read_bytes(), path, "exec"), module.__dict__)
            self._loaded[path] = module
        return self._loaded[path]


def compile_request(request: Mapping[str, Any], modules: _Modules) -> tuple[dict[str, Any], bytes, str]:
    """Metadata, binary and assembly text of one request.

    Raises:
        Exception: whatever the module or Triton raised.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function = getattr(modules.load(request["module"]), request["function"])
    constants = {name: _constant(value) for name, value in request["constexprs"].items()}
    names = function.arg_names
    source = ASTSource(
        function,
        signature=_signature(names, request["signature"], constants),
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs={(names.index(name),): [["tt.divisibility", by]] for name, by in request["attrs"].items()},
    )
    target = GPUTarget(*request["target"])
    compiled = triton.compile(source, target=target, options=request["options"])
    is_hip = target.backend == "hip"
    metadata = {key: getattr(compiled.metadata, key, 0) for key in _METADATA}
    return metadata, compiled.asm["hsaco" if is_hip else "cubin"], compiled.asm["amdgcn" if is_hip else "ptx"]


def _signature(names: Sequence[str], types: Mapping[str, str], constants: Mapping[str, Any]) -> dict[str, str]:
    """Every parameter's type in order, constants included.

    Raises:
        ValueError: a parameter without a type, or a name that is no parameter.
    """
    unknown = sorted({*types, *constants} - set(names))
    missing = [name for name in names if name not in types and name not in constants]
    if unknown or missing:
        raise ValueError(f"parameters without a type: {missing}; names that are no parameter: {unknown}")
    return {name: "constexpr" if name in constants else types[name] for name in names}


def _constant(value: Any) -> Any:
    """A constant as Triton takes it; texts like `tl.bfloat16` are that object."""
    if isinstance(value, str) and value.startswith("tl."):
        import triton.language

        return getattr(triton.language, value[len("tl.") :])
    return value


def _describe(error: Exception, path: str) -> dict[str, Any]:
    """Message and line of the innermost error; Triton chains one per call between jitted functions."""
    innermost: BaseException = error
    while innermost.__cause__ is not None:
        innermost = innermost.__cause__
    text = getattr(innermost, "error_message", None) or str(innermost)
    return {"error": f"{type(innermost).__name__}: {text}", "line": _line(innermost, path) or _line(error, path)}


def _line(error: BaseException, path: str) -> int | None:
    """The module's line of a compilation error: its node counts lines from the function's `def`."""
    source, line = getattr(error, "src", None), getattr(getattr(error, "node", None), "lineno", None)
    if not isinstance(source, str) or not isinstance(line, int):
        return None
    text = Path(path).read_text(encoding="utf-8")
    start = text.find(source.strip("\n"))
    return None if start < 0 else text.count("\n", 0, start) + line


def main(arguments: Sequence[str]) -> None:
    """Serve the requests in order."""
    requests, folder = json.loads(Path(arguments[0]).read_text(encoding="utf-8")), Path(arguments[1])
    modules = _Modules()
    for number, request in enumerate(requests):
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                reply, binary, assembly = compile_request(request, modules)
            (folder / f"{number}.code").write_bytes(binary)
            (folder / f"{number}.asm").write_text(assembly, encoding="utf-8")
        except Exception as error:
            reply = _describe(error, request["module"])
        (folder / f"{number}.log").write_text(printed.getvalue(), encoding="utf-8")
        partial = folder / f"{number}.partial"
        partial.write_text(json.dumps(reply), encoding="utf-8")
        partial.replace(folder / f"{number}.json")


if __name__ == "__main__":
    # Bytecode of generated modules' imports must not appear beside them.
    sys.dont_write_bytecode = True
    main(sys.argv[1:])
    # LLVM's teardown has crashed after good results; they are all on disk by now.
    sys.stdout.flush()
    os._exit(0)
