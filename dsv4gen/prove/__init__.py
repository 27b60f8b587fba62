"""Expressions and proofs: a spec that passes can be generated, one that fails names a shape that breaks it.

Modules in dependency order:

tokens       the language's words and signs, checked one by one
nodes        the expression tree, its kinds and limits
intervals    bounds of an expression over ranges
folding      substitution and constant folding
parse        spec text to a tree; nothing is ever evaluated as code
printers     spec and Python text
cpp          device C++ text, with words proven wide enough
symbolic     sympy formulas and z3 terms, imported on first use
expressions  `Expr`, which the other stages use
space        axes and the shapes they span
search       is there a shape that fulfils a predicate? exact, within a budget
defined      no division by zero, no exponent out of range
records      what proofs leave behind, for tables and the manifest
fit          proof (a): tiles stay within resource limits
coverage     proof (b): ordered paths and buckets take every shape, within their domains
reach        is there a shape that gets to this row of a table?
width        proof (c): index expressions and sizes fit their type

Importing this package imports neither sympy nor z3.
"""

from dsv4gen.prove.coverage import PathRule, prove_buckets, prove_coverage
from dsv4gen.prove.cpp import cpp_helpers
from dsv4gen.prove.expressions import Expr
from dsv4gen.prove.fit import measure_fit, prove_fit, tile_assignments
from dsv4gen.prove.records import COLUMNS, CoverageProof, FitProof, Proof, WidthProof
from dsv4gen.prove.space import Axis
from dsv4gen.prove.width import prove_size, prove_width

__all__ = [
    "COLUMNS",
    "Axis",
    "CoverageProof",
    "Expr",
    "FitProof",
    "PathRule",
    "Proof",
    "WidthProof",
    "cpp_helpers",
    "measure_fit",
    "prove_buckets",
    "prove_coverage",
    "prove_fit",
    "prove_size",
    "prove_width",
    "tile_assignments",
]
