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
    "mix": "f32",
}
#: element type of a pair -> how a half (or a row) is read and written
_PAIRS = {
    "f16x2": ("f32", "f16_to_f32({} & 0xffff)", "f32_to_f16({})"),
    "u16x2": ("u32", "({} & 0xffff)", "({})"),
    "i16x2": ("i32", "static_cast<i16>({})", "static_cast<u32>({})"),
}
_GET = {"mix": "f32", "f16x2": "u32", "u16x2": "u32", "i16x2": "u32"}


def function_name(instruction: str) -> str:
    """The C++ name of an instruction's function."""
    return "op_" + instruction.replace(".", "_")


def vector_function(row: Row) -> str:
    """A loop over the lanes: read the sources, compute, write under EXEC; masks are collected as bits."""
    masks = [name for name, kind in zip(SOURCE_NAMES, row.sources, strict=False) if kind == "mask"]
    result = row.results[0]
    lines = [f"static void {function_name(row.name)}(Wave& w, const Op& o) {{", "  u32* d_row = dwords(w, o.d);"]
    lines += [f"  const u32* {name}_row = dwords(w, o.{name});" for name in SOURCE_NAMES[: len(row.sources)]]
    if row.reads_result:
        lines.append("  const u32* x_row = dwords(w, o.x);")
    if len(row.results) > 1:
        lines.append("  u32* m_row = dwords(w, o.m);")
    lines += _uniform_values(row)
    lines.append("  for (Lane base = 0; base < w.lanes; base += 32) {")
    lines += [f"    const u32 {name}_bits = {name}_row[base / 32];" for name in masks]
    if "mask" in row.results:
        lines.append("    u8 flags[32];")
    lines.append("    INDEPENDENT_LANES for (Lane i = 0; i < 32; ++i) {")
    lines.append("      const Lane lane = base + i;")
    lines += _pair_results(row) if result.endswith("x2") else [*_lane_sources(row), *_lane_results(row)]
    lines.append("    }")
    if "mask" in row.results:
        target = "d_row" if result == "mask" else "m_row"
        lines.append(f"    {target}[base / 32] = pack_flags(flags) & w.s[kExec + base / 32];")
    lines += ["  }", "}"]
    return "\n".join(lines)


def _uniform_values(row: Row) -> list[str]:
    text = f"{row.expression} {row.second}"
    lines = []
    if "option" in text:
        lines.append("  const u32 option = static_cast<u32>(o.immediate);")
    if "clamps" in text:
        lines.append("  const bool clamps = w.fp16_overflow;")
    return lines


def _lane_sources(row: Row) -> list[str]:
    lines = []
    for name, kind in zip(SOURCE_NAMES, row.sources, strict=False):
        read = f"get_{_GET.get(kind, kind)}({name}_row, lane)"
        value = f"{name}_bits >> i & 1" if kind == "mask" else read
        lines.append(f"      const {_VALUE_TYPES.get(kind, 'u32')} {name} = {value};")
    if row.reads_result:
        result = row.results[0]
        lines.append(f"      const {_VALUE_TYPES[result]} d = get_{result}(x_row, lane);")
    return lines


def _pair_results(row: Row) -> list[str]:
    """The expression for both elements: halves of a dword, or two rows of fp32."""
    result = row.results[0]
    names = list(SOURCE_NAMES[: len(row.sources)])
    rows = {name: f"{name}_row" for name in names} | ({"d": "x_row"} if row.reads_result else {})
    if result == "f32x2":
        value, mask = "f32", "w.mask[lane]"
        read = {name: [f"get_f32({r}, lane)", f"get_f32({r} + kRowLanes, lane)"] for name, r in rows.items()}
        write = f"put_f32(d_row, lane, {mask}, low); put_f32(d_row + kRowLanes, lane, {mask}, high);"
    else:
        value, get, put = _PAIRS[result]
        read = {name: [get.format(f"{r}[lane]"), get.format(f"({r}[lane] >> 16)")] for name, r in rows.items()}
        write = f"put_u32(d_row, lane, w.mask[lane], pair({put.format('low')}, {put.format('high')}));"
    parameters = ", ".join(f"{value} {name}" for name in rows)
    calls = [", ".join(read[name][half] for name in rows) for half in range(2)]
    return [
        f"      const auto element = []({parameters}) {{ return {row.expression}; }};",
        f"      const {value} low = element({calls[0]}), high = element({calls[1]});",
        f"      {write}",
    ]


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
