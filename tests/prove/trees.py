"""Random expressions of every operator, with values that exist for every shape of `RANGES`.

One generator serves hypothesis, which draws its seed, and the table of compiled C++.
"""

from __future__ import annotations

import random

from dsv4gen.prove.nodes import Apply, Choice, Name, Node, Number, Truth

#: names and the values they take; only `bits` is small enough to be an exponent
RANGES = {
    "a": (0, 40),
    "batch": (0, 1 << 20),
    "width": (0, 1 << 22),
    "k": (1, 2048),
    "head": (0, 3),
    "bits": (0, 20),
}
MODES = ("indices", "page_table", "dual")
_LITERALS = (0, 1, 2, 3, 7, 8, 255, 4096, 65535)


def number(source: random.Random, depth: int) -> Node:
    """A numeric tree of at most `depth` operators on a path."""
    if depth == 0:
        return Number(source.choice(_LITERALS)) if source.random() < 0.4 else Name(source.choice(list(RANGES)))
    operator = source.choice(
        ["+", "+", "-", "*", "*", "//", "//", "%", "ceil_div", "round_up", "min", "max", "if", "neg", "**", "2**"]
    )
    if operator == "2**":
        exponents: list[Node] = [Name("bits"), Name("head"), Number(5)]
        return Apply("**", (Number(2), source.choice(exponents)))
    if operator == "**":
        return Apply("**", (Name("a"), Number(source.randint(0, 3))))
    if operator == "if":
        return Apply("if", (truth(source, depth - 1), number(source, depth - 1), number(source, depth - 1)))
    if operator == "neg":
        return Apply("neg", (Name(source.choice(list(RANGES))),))
    if operator in ("//", "%", "ceil_div", "round_up"):
        return Apply(operator, (number(source, depth - 1), _positive(source)))
    count = source.randint(2, 3) if operator in ("min", "max") else 2
    return Apply(operator, tuple(number(source, depth - 1) for _ in range(count)))


def _positive(source: random.Random) -> Node:
    plus_one = Apply("+", (Name(source.choice(["head", "a"])), Number(1)))
    power = Apply("**", (Number(2), Name("bits")))
    divisors: list[Node] = [Number(3), Number(64), Name("k"), plus_one, power]
    return source.choice(divisors)


def truth(source: random.Random, depth: int) -> Node:
    """A predicate of at most `depth` operators on a path."""
    if depth == 0:
        leaf = source.choice(["flag", "mode", "literal"])
        if leaf == "flag":
            return Name("flag")
        if leaf == "literal":
            return Truth(source.random() < 0.5)
        return Apply(source.choice(["==", "!="]), (Name("mode"), Choice(source.choice(MODES))))
    operator = source.choice(["<", "<=", ">", ">=", "==", "!=", "and", "or", "not", "if", "same"])
    if operator == "not":
        return Apply("not", (truth(source, depth - 1),))
    if operator in ("and", "or"):
        return Apply(operator, tuple(truth(source, depth - 1) for _ in range(source.randint(2, 3))))
    if operator == "if":
        return Apply("if", tuple(truth(source, depth - 1) for _ in range(3)))
    if operator == "same":
        equality = source.choice(["==", "!="])
        return Apply(equality, (truth(source, depth - 1), truth(source, depth - 1)))
    return Apply(operator, (number(source, depth - 1), number(source, depth - 1)))


def shape(source: random.Random) -> dict[str, int | bool | str]:
    """A value for every name; small values and both ends are likely."""
    values: dict[str, int | bool | str] = {}
    for name, (low, high) in RANGES.items():
        near = min(high, low + 5)
        values[name] = source.choice([low, high, source.randint(low, near), source.randint(low, high)])
    return {**values, "flag": source.random() < 0.5, "mode": source.choice(MODES)}
