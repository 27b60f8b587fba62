"""Evaluate a spec expression from its JSON form, with the standard library only.

The generator writes expressions into manifests as nested lists; the runtime turns each into a closure once
and calls it per launch. No text is ever evaluated. The forms:

    8, true, false           a number, a truth value
    "seq_len"                the value of a name (dotted names are one key: "wave.launch")
    ["choice", "indices"]    the text of an option's choice
    [operator, operand...]   one of `OPERATORS`, e.g. ["<=", "seq_len", ["*", 8, "block_threads"]]

Division and modulo floor as in Python. `["if", condition, yes, no]`, `and` and `or` evaluate only what they
need.
"""

from __future__ import annotations

import operator as op
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dsv4gen.base.errors import ExpressionError, did_you_mean

#: largest exponent of `**`: 2 ** 62 is the largest power of two in a signed 64-bit word
EXPONENT_MAX = 62
#: results of `**` stay below 2 ** POWER_BITS_MAX, so that no expression can exhaust memory
POWER_BITS_MAX = 128
#: deepest nesting of operators
DEPTH_MAX = 64

Value = int | bool | str
Environment = Mapping[str, Any]
Evaluator = Callable[[Environment], Any]


def ceil_div(value: int, divisor: int) -> int:
    """`value / divisor`, rounded up."""
    return -(-value // divisor)


def round_up(value: int, multiple: int) -> int:
    """The smallest multiple of `multiple` that is not below `value`."""
    return -(-value // multiple) * multiple


def power(base: int, exponent: int) -> int:
    """`base ** exponent` within the language's limits.

    Raises:
        ExpressionError: an exponent outside 0..EXPONENT_MAX, or a result beyond POWER_BITS_MAX bits.
    """
    if not 0 <= exponent <= EXPONENT_MAX:
        raise ExpressionError(f"exponent {exponent} is outside 0..{EXPONENT_MAX}")
    if base.bit_length() * exponent > POWER_BITS_MAX:
        raise ExpressionError(f"a power is beyond {POWER_BITS_MAX} bits: exponent {exponent}")
    return int(base**exponent)


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": op.add,
    "-": op.sub,
    "*": op.mul,
    "//": op.floordiv,
    "%": op.mod,
    "**": power,
    "ceil_div": ceil_div,
    "round_up": round_up,
    "<": op.lt,
    "<=": op.le,
    ">": op.gt,
    ">=": op.ge,
    "==": op.eq,
    "!=": op.ne,
}
UNARY: dict[str, Callable[[Any], Any]] = {"neg": op.neg, "not": op.not_}
_MANY = ("and", "or", "min", "max")
#: every operator of the JSON form
OPERATORS = (*BINARY, *UNARY, *_MANY, "if")


def evaluate_json(tree: object, env: Environment) -> Any:
    """The value of `tree` under `env`: an int, a bool or a choice's text.

    Raises:
        ExpressionError: a malformed tree, a name without a value, a division by zero, an exponent out of
            range.
    """
    return compile_json(tree)(env)


def compile_json(tree: object) -> Evaluator:
    """A function from names to the value of `tree`; compile once, call per launch.

    Raises:
        ExpressionError: a malformed tree now; a missing name or a division by zero when called.
    """
    evaluator = _compile(tree, 0)

    def checked(env: Environment) -> Any:
        try:
            return evaluator(env)
        except ZeroDivisionError:
            raise ExpressionError(f"division by zero in {tree!r}") from None
        except KeyError as missing:
            name = str(missing.args[0])
            raise ExpressionError(f"no value for '{name}'{did_you_mean(name, env)}") from None
        except TypeError:
            raise ExpressionError(f"a value of the wrong kind in {tree!r}") from None

    return checked


def names_json(tree: object) -> Iterator[str]:
    """The names a tree reads, in order of appearance, repeats included."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, (list, tuple)) and tree and tree[0] != "choice":
        for operand in tree[1:]:
            yield from names_json(operand)


def choose_json(tree: Any, options: Mapping[str, str]) -> Any:
    """A tree less its `if`s that only options decide: of each, the branch that is taken."""
    if not isinstance(tree, list) or not tree or tree[0] == "choice":
        return tree
    if tree[0] == "if" and options.keys() >= set(names_json(tree[1])):
        return choose_json(tree[2] if evaluate_json(tree[1], options) else tree[3], options)
    return [tree[0], *(choose_json(operand, options) for operand in tree[1:])]


def plain_names_json(tree: object) -> Iterator[str]:
    """The names that a tree is, as it stands or as a branch of its `if`s; none where it is a computation."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, (list, tuple)) and tree and tree[0] == "if":
        for branch in tree[2:]:
            yield from plain_names_json(branch)


def _compile(tree: object, depth: int) -> Evaluator:
    if depth > DEPTH_MAX:
        raise ExpressionError(f"expression nested deeper than {DEPTH_MAX}")
    if isinstance(tree, str):
        return op.itemgetter(tree)
    if isinstance(tree, (bool, int)):
        return _constant(tree)
    if isinstance(tree, (list, tuple)) and tree and isinstance(tree[0], str):
        return _compile_operator(tree[0], tree[1:], depth)
    raise ExpressionError(f"{tree!r} is not an expression: a number, true, false, a name or [operator, operand...]")


def _compile_operator(name: str, operands: Sequence[object], depth: int) -> Evaluator:
    if name == "choice" and len(operands) == 1 and isinstance(operands[0], str):
        return _constant(operands[0])
    parts = [_compile(operand, depth + 1) for operand in operands]
    if name in BINARY and len(parts) == 2:
        return _binary(BINARY[name], *parts)
    if name in UNARY and len(parts) == 1:
        return _unary(UNARY[name], *parts)
    if name == "if" and len(parts) == 3:
        return _conditional(*parts)
    if name in _MANY and len(parts) >= 2:
        return _many(name, parts)
    if name in OPERATORS or name == "choice":
        raise ExpressionError(f"operator {name!r} cannot take {len(operands)} operand(s)")
    raise ExpressionError(f"unknown operator {name!r}{did_you_mean(name, OPERATORS)}")


def _constant(value: Value) -> Evaluator:
    return lambda env: value  # noqa: ARG005 - every evaluator takes the environment


def _unary(function: Callable[[Any], Any], operand: Evaluator) -> Evaluator:
    return lambda env: function(operand(env))


def _binary(function: Callable[[Any, Any], Any], left: Evaluator, right: Evaluator) -> Evaluator:
    return lambda env: function(left(env), right(env))


def _conditional(condition: Evaluator, yes: Evaluator, no: Evaluator) -> Evaluator:
    return lambda env: yes(env) if condition(env) else no(env)


def _many(name: str, parts: list[Evaluator]) -> Evaluator:
    if name == "and":
        return lambda env: all(part(env) for part in parts)
    if name == "or":
        return lambda env: any(part(env) for part in parts)
    choose = min if name == "min" else max
    return lambda env: choose([part(env) for part in parts])
