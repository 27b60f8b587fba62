"""Literal filters: the only way a bool, float, None or expression reaches the output."""

from __future__ import annotations

import math
import struct

import jinja2

from dsv4gen.base.errors import TemplateError
from dsv4gen.prove import Expr

_U32_MAX = 2**32 - 1


def cpp(value: object) -> str:
    """A C++ literal or expression: `true`, `42u`, `-1`, `1e-06f`, or the bits of an infinity or NaN.

    Raises:
        TemplateError: None, text, or a value with no literal form.
    """
    _require_defined(value)
    if isinstance(value, Expr):
        return value.to_cpp()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return _cpp_int(value)
    if isinstance(value, float):
        return _cpp_float(value)
    raise TemplateError(f"{value!r} has no C++ literal form", remedy="pass a bool, int, float or expression")


def _cpp_int(value: int) -> str:
    if value < 0:
        return str(value) if value >= -(2**31) else f"{value}ll"
    if value > 2**64 - 1:
        raise TemplateError(f"{value} does not fit 64 bits")
    return f"{value}u" if value <= _U32_MAX else f"{value}ull"


def _cpp_float(value: float) -> str:
    if not math.isfinite(value):
        (bits,) = struct.unpack("<I", struct.pack("<f", value))
        return f"from_bits({bits:#010x}u)"
    text = repr(value)
    return f"{text}f" if any(mark in text for mark in ".e") else f"{text}.0f"


def py(value: object) -> str:
    """A Python literal or expression; infinities and NaN are spelt `float("inf")`.

    Raises:
        TemplateError: None, or a value with no literal form.
    """
    _require_defined(value)
    if isinstance(value, Expr):
        return value.to_python()
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, (bool, int, float, str)):
        return repr(value).replace("'", '"') if isinstance(value, str) and '"' not in value else repr(value)
    if isinstance(value, (tuple, list)):
        items = [py(item) for item in value]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{py(key)}: {py(item)}" for key, item in value.items()) + "}"
    raise TemplateError(f"{value!r} has no Python literal form")


def py_block(value: object, indent: int, width: int = 119) -> str:
    """A Python expression whose longest calls take a line per operand, for a line that is indented by `indent`.

    Raises:
        TemplateError: the value is no expression.
    """
    _require_defined(value)
    if isinstance(value, Expr):
        # `return ` or the like stands before it.
        return value.to_python_block(width - len("return "), indent)
    raise TemplateError(f"{value!r} is no expression", remedy="write {{ value | py }}")


def _require_defined(value: object) -> None:
    """Let Jinja say which name is undefined, with its own words."""
    if isinstance(value, jinja2.Undefined):
        str(value)


def finalize(value: object) -> object:
    """Refuse values that would print the Python way inside another language."""
    _require_defined(value)
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return value
    raise TemplateError(
        f"a template prints {value!r} ({type(value).__name__}) without a literal filter",
        remedy="write {{ value | cpp }} or {{ value | py }}",
    )
