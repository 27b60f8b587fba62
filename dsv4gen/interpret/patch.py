"""What makes Triton's interpreter an oracle: exact bf16 and fp8, and checked addresses.

Seen in every version from 3.6 to 3.9: `tl.dot` multiplies raw bf16 bits, float32 to bf16 truncates, sums and
arithmetic of bf16 work on the bits, fp8 down-casts lose carries, NaN codes decode to numbers; before 3.8 the
e4m3fnuz type is unknown. Must be applied before the first kernel is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import triton.language as tl
import triton.runtime.interpreter as interpreter

from dsv4gen.interpret import convert, reductions
from dsv4gen.interpret.handles import Handle, is_narrow, narrow, widen

_BUILDER_TYPES = {"fp8e4b8": "get_fp8e4b8_ty", "fp8e5b16": "get_fp8e5b16_ty"}


class AddressError(Exception):
    """A load or store outside every argument of the kernel."""


class AddressGuard:
    """The byte ranges the running kernel may touch; checks nothing while `ranges` is None."""

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int]] | None = None

    def allow(self, ranges: Iterable[tuple[int, int]] | None) -> None:
        """Set the ranges [start, end) of the next kernels, or None for no check."""
        self.ranges = None if ranges is None else sorted(entry for entry in ranges if entry[1] > entry[0])

    def check(self, what: str, pointers: Any, mask: Any, program: tuple[int, ...]) -> None:
        """Refuse active lanes outside the ranges.

        Raises:
            AddressError: naming the access, the program and the distance to the nearest argument.
        """
        if self.ranges is None:
            return
        addresses = np.broadcast_to(pointers.data, np.broadcast_shapes(pointers.data.shape, mask.shape))
        active = addresses[np.broadcast_to(mask, addresses.shape)].astype(np.uint64)
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        legal = np.zeros(active.shape, dtype=bool)
        for start, end in self.ranges:
            legal |= (active >= start) & (active + np.uint64(size) <= end)
        if not legal.all():
            first = int(active[~legal][0])
            raise AddressError(
                f"{what} of {size} bytes outside every argument in program {program}, "
                f"{int((~legal).sum())} lanes; the first is {self._distance(first)}"
            )

    def _distance(self, address: int) -> str:
        """Where an address lies relative to the nearest range."""
        nearest = min(self.ranges or [(0, 0)], key=lambda entry: min(abs(address - entry[0]), abs(address - entry[1])))
        if address < nearest[0]:
            return f"{nearest[0] - address} bytes before an argument of {nearest[1] - nearest[0]} bytes"
        return f"{address - nearest[0]} bytes into an argument of {nearest[1] - nearest[0]} bytes"


def apply(guard: AddressGuard) -> None:
    """Patch the interpreter of this process."""
    _patch_casts()
    _patch_arithmetic()
    _patch_dot()
    reductions.patch()
    _patch_language()
    _patch_memory(guard)
    _patch_copy_back()
    _patch_nested_calls()


def _patch_casts() -> None:
    original = interpreter._convert_float
    builder = interpreter.InterpreterBuilder
    plain_cast = builder.cast_impl
    toward_zero = interpreter._ir.ROUNDING_MODE.RTZ

    def convert_float(data: Any, source: Any, target: Any, rounding: Any) -> Any:
        if rounding == toward_zero or not convert.supported(source, target):
            return original(data, source, target, rounding)
        return convert.convert(data, source, target)

    def cast(self: Any, source: Any, target: Any) -> Any:
        if is_narrow(source) or str(target.scalar) in convert.NARROW:
            wide = plain_cast(self, widen(source), tl.float32)
            return narrow(wide.data, target) if str(target.scalar) in convert.NARROW else plain_cast(self, wide, target)
        return plain_cast(self, source, target)

    interpreter._convert_float = convert_float
    builder.cast_impl = cast


def _patch_arithmetic() -> None:
    """Element-wise operations of bf16 and fp8 compute in float32 and round once, as compiled code does."""
    builder = interpreter.InterpreterBuilder
    for name in ("binary_op", "unary_op", "ternary_op"):
        setattr(builder, name, _widened(getattr(builder, name)))
    builder.create_fma = _widened_fma(builder.create_fma)


def _widened(plain: Callable[..., Any]) -> Callable[..., Any]:
    """An operation on handles followed by a numpy function, done in float32 for narrow types."""

    def operate(self: Any, *arguments: Any) -> Any:
        *handles, function = arguments
        result_type = handles[-1].dtype.scalar
        if not is_narrow(handles[-1]):
            return plain(self, *arguments)
        wide = [widen(handle) for handle in handles]
        result = function(*(handle.data for handle in wide))
        return Handle(result, result_type) if result.dtype == np.bool_ else narrow(result, result_type)

    return operate


def _widened_fma(plain: Callable[..., Any]) -> Callable[..., Any]:
    def fma(self: Any, left: Any, right: Any, addend: Any) -> Any:
        if not is_narrow(addend):
            return plain(self, left, right, addend)
        product = widen(left).data.astype(np.float64) * widen(right).data
        return narrow(product + widen(addend).data, addend.dtype)

    return fma


def _patch_dot() -> None:
    def create_dot(self: Any, a: Any, b: Any, d: Any, input_precision: Any, max_imprecise: Any) -> Any:  # noqa: ARG001
        product = np.matmul(widen(a).data, widen(b).data, dtype=widen(d).data.dtype)
        total = product + widen(d).data
        return narrow(total, d.dtype) if is_narrow(d) else Handle(total, d.dtype.scalar)

    interpreter.InterpreterBuilder.create_dot = create_dot


def _patch_language() -> None:
    """Let old interpreters know the fnuz types, and take run-time loop bounds with numpy 2.4 (before 3.7)."""
    plain = interpreter._patch_lang_core

    def patch_lang_core(language: Any, scope: Any) -> None:
        plain(language, scope)
        known = language.dtype.to_ir

        def to_ir(self: Any, builder: Any) -> Any:
            method = _BUILDER_TYPES.get(self.name)
            return getattr(builder, method)() if method else known(self, builder)

        scope.set_attr(language.dtype, "to_ir", to_ir)
        scope.set_attr(language.tensor, "__index__", lambda self: int(self.handle.data.squeeze()))

    interpreter._patch_lang_core = patch_lang_core


def _patch_memory(guard: AddressGuard) -> None:
    """Check every active lane's address before the interpreter dereferences it."""
    builder = interpreter.InterpreterBuilder
    positions = {
        "create_masked_load": ("load", 0, 1),
        "create_masked_store": ("store", 0, 2),
        "create_atomic_rmw": ("atomic", 1, 3),
        "create_atomic_cas": ("atomic", 0, None),
    }
    for name, (what, pointer, mask) in positions.items():
        setattr(builder, name, _checked(getattr(builder, name), guard, what, pointer, mask))


def _checked(
    plain: Callable[..., Any], guard: AddressGuard, what: str, pointer: int, mask: int | None
) -> Callable[..., Any]:
    def access(self: Any, *arguments: Any, **keywords: Any) -> Any:
        pointers = arguments[pointer]
        active = np.ones_like(pointers.data, dtype=bool) if mask is None else arguments[mask].data
        guard.check(what, pointers, active, self.grid_idx)
        return plain(self, *arguments, **keywords)

    return access


def _patch_copy_back() -> None:
    """Kernels run on the shared memory itself: nothing to restore, and a sparse pool stays sparse."""

    def restore(self: Any, *arguments: Any) -> None:  # noqa: ARG001
        return None

    interpreter.GridExecutor._restore_args_dev = restore


def _patch_nested_calls() -> None:
    """Prepare the language once per launch, not at every call of a device function (1-2 ms each)."""
    plain_prepare, plain_run = interpreter._patch_lang, interpreter.GridExecutor.__call__
    prepared: set[int] = set()

    def prepare(function: Any) -> Any:
        modules = {id(value) for value in function.__globals__.values() if value is tl or value is tl.core}
        if modules and modules <= prepared:
            return interpreter._LangPatchScope()
        prepared.update(modules)
        return plain_prepare(function)

    def run(self: Any, *arguments: Any, **keywords: Any) -> Any:
        prepared.clear()
        try:
            return plain_run(self, *arguments, **keywords)
        finally:
            prepared.clear()

    interpreter._patch_lang = prepare
    interpreter.GridExecutor.__call__ = run
