"""Expressions and proofs: a spec that passes can be generated, one that fails names a shape that breaks it.

Modules in dependency order:

nodes        the expression tree, its kinds and limits
intervals    bounds of an expression over ranges
folding      substitution and constant folding
tokens       the language's words and signs, checked one by one
parse        spec text to a tree; nothing is ever evaluated as code
printers     spec and Python text
cpp          device C++ text, with words proven wide enough
symbolic     sympy formulas and z3 terms, imported on first use
expressions  `Expr`, which the other stages use

Importing this package imports neither sympy nor z3.
"""

from dsv4gen.prove.cpp import cpp_helpers
from dsv4gen.prove.expressions import Expr

__all__ = ["Expr", "cpp_helpers"]
