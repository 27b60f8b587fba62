"""Turn table rows into C++ functions over the runtime's Wave and Op."""

from __future__ import annotations

from dsv4gen.emulate.amdgcn.tables.rows import SOURCE_NAMES, Row

_VALUE_TYPES = {
    "u32": "u32",
    "i32": "i32",
    "f32": "f32",
    "u16": "u32",
    "i16": "i32",
    "f16": "f32",
    "bf16": "f32",
    "u64": "u64",
    "i64": "i64",
    "f64": "f64",
    "s16": "i32",
    "mask": "bool",
}


def function_name(instruction: str) -> str:
    """The C++ name of an instruction's function."""
    return "op_" + instruction.replace(".", "_")


def vector_function(row: Row) -> str:
    """A loop over the lanes: read the sources, compute, write under EXEC; masks are collected as bits."""
    masks = [name for name, kind in zip(SOURCE_NAMES, row.sources, strict=False) if kind == "mask"]
    lines = [f"static void {function_name(row.name)}(Wave& w, const Op& o) {{"]
    result = row.results[0]
    lines.append("  u32* d_row = dwords(w, o.d);")
    for name in SOURCE_NAMES[: len(row.sources)]:
        lines.append(f"  const u32* {name}_row = dwords(w, o.{name});")
    if row.reads_result:
        lines.append("  const u32* x_row = dwords(w, o.x);")
    if len(row.results) > 1:
        lines.append("  u32* m_row = dwords(w, o.m);")
    lines.append("  for (Lane base = 0; base < w.lanes; base += 32) {")
    lines += [f"    const u32 {name}_bits = {name}_row[base / 32];" for name in masks]
    if "mask" in row.results:
        lines.append("    u8 flags[32];")
    lines.append("    INDEPENDENT_LANES for (Lane i = 0; i < 32; ++i) {")
    lines.append("      const Lane lane = base + i;")
    for name, kind in zip(SOURCE_NAMES, row.sources, strict=False):
        value = f"{name}_bits >> i & 1" if kind == "mask" else f"get_{kind}({name}_row, lane)"
        lines.append(f"      const {_VALUE_TYPES[kind]} {name} = {value};")
    if row.reads_result:
        lines.append(f"      const {_VALUE_TYPES[result]} d = get_{result}(x_row, lane);")
    lines += _lane_results(row)
    lines.append("    }")
    if "mask" in row.results:
        target = "d_row" if result == "mask" else "m_row"
        lines.append(f"    {target}[base / 32] = pack_flags(flags) & w.s[kExec + base / 32];")
    lines += ["  }", "}"]
    return "\n".join(lines)


def _lane_results(row: Row) -> list[str]:
    kind = row.results[0]
    if kind == "mask":
        return [f"      flags[i] = ({row.expression}) ? 1 : 0;"]
    lines = [
        f"      const {_VALUE_TYPES[kind]} r = {row.expression};",
        f"      put_{kind}(d_row, lane, w.mask[lane], r);",
    ]
    if row.second:
        lines.append(f"      flags[i] = ({row.second}) ? 1 : 0;")
    return lines


def scalar_function(row: Row) -> str:
    """Straight code over the scalar file."""
    lines = [f"static void {function_name(row.name)}(Wave& w, const Op& o) {{"]
    for name, kind in zip(SOURCE_NAMES, row.sources, strict=False):
        read = {"s16": "i32", "u16": "u32"}.get(kind, kind)
        lines.append(f"  const {_VALUE_TYPES[kind]} {name} = read_{read}(dwords(w, o.{name}));")
    expressions = f"{row.expression} {row.second}"
    if "scc" in expressions:
        lines.append("  const u32 scc = w.s[kScc];")
    result = row.results[0]
    if result == "scc":
        lines += [f"  w.s[kScc] = ({row.expression}) ? 1 : 0;", "}"]
        return "\n".join(lines)
    if row.reads_result:
        lines.append(f"  const {_VALUE_TYPES[result]} d = read_{result}(dwords(w, o.d));")
    lines.append(f"  const {_VALUE_TYPES[result]} r = {row.expression};")
    if row.second:
        lines.append(f"  w.s[kScc] = ({row.second}) ? 1 : 0;")
    lines += [f"  write_{result}(dwords(w, o.d), r);", "}"]
    return "\n".join(lines)


def save_exec_function(row: Row) -> str:
    """`s_*_saveexec` and `s_*_wrexec`: EXEC changes; the result is its old value, or its new one for wrexec."""
    kept = "n" if row.name.endswith("wrexec") else "x"
    return "\n".join(
        (
            f"static void {function_name(row.name)}(Wave& w, const Op& o) {{",
            "  const u64 a = read_mask(w, dwords(w, o.a)), x = exec_of(w);",
            f"  const u64 all = w.lanes == 64 ? ~0ull : 0xffffffffull, n = ({row.expression}) & all;",
            f"  write_mask(w, dwords(w, o.d), {kept});",
            "  write_mask(w, &w.s[kExec], n);",
            "  w.s[kScc] = n != 0;",
            "  refresh_mask(w);",
            "}",
        )
    )


def named_function(instruction: str, function: str) -> str:
    """An instruction that a runtime function (or template instance) carries out."""
    return f"static void {function_name(instruction)}(Wave& w, const Op& o) {{ {function}(w, o); }}"
