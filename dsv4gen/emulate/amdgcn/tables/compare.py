"""Vector comparisons: every relation for every type; the result is a mask of lanes."""

from __future__ import annotations

from dsv4gen.emulate.amdgcn.tables.rows import Row, parse_rows

_INTEGER = {
    "f": "false",
    "lt": "a < b",
    "eq": "a == b",
    "le": "a <= b",
    "gt": "a > b",
    "ne": "a != b",
    "ge": "a >= b",
    "t": "true",
}
_FLOAT = {
    "f": "false",
    "lt": "a < b",
    "eq": "a == b",
    "le": "a <= b",
    "gt": "a > b",
    "lg": "a < b || a > b",
    "ge": "a >= b",
    "o": "a == a && b == b",
    "u": "a != a || b != b",
    "nge": "!(a >= b)",
    "nlg": "!(a < b || a > b)",
    "ngt": "!(a > b)",
    "nle": "!(a <= b)",
    "neq": "!(a == b)",
    "nlt": "!(a < b)",
    "tru": "true",
    "t": "true",
}


def _relations(types: tuple[str, ...], relations: dict[str, str]) -> dict[str, Row]:
    return {
        f"v_cmp_{name}_{kind}": Row(f"v_cmp_{name}_{kind}", ("mask",), (kind, kind), expression)
        for kind in types
        for name, expression in relations.items()
    }


#: `v_cmpx_*` uses the same rows and writes EXEC as well.
COMPARE = (
    _relations(("i16", "u16", "i32", "u32", "i64", "u64"), _INTEGER)
    | _relations(("f16", "f32", "f64"), _FLOAT)
    | parse_rows("""
v_cmp_class_f16       mask = u16 u32        : class_f16(a, b)
v_cmp_class_f32       mask = u32 u32        : class_f32(a, b)
v_cmp_class_f64       mask = u64 u32        : class_f64(a, b)
""")
)
