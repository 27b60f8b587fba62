"""Conversions between float formats of up to 16 bits. `option` holds op_sel (bit i = its i-th entry) or byte_sel;
`clamps` is the mode bit that makes overflow saturate. Rows of fp8 and bf8 exist in both dialects: the tables below
are OCP, and `.fnuz` variants are derived from them for gfx942."""

from __future__ import annotations

from dataclasses import replace

from dsv4gen.emulate.amdgcn.tables.rows import Row, parse_rows

_FP8 = parse_rows("""
v_cvt_f32_fp8         f32 = u32             : Fp8::decode(byte_of(a, option & 3))
v_cvt_f32_bf8         f32 = u32             : Bf8::decode(byte_of(a, option & 3))
v_cvt_pk_f32_fp8      u64 = u32             : decode_two<Fp8>(half_of(a, option & 1), 1.0)
v_cvt_pk_f32_bf8      u64 = u32             : decode_two<Bf8>(half_of(a, option & 1), 1.0)
v_cvt_pk_fp8_f32      u32 = f32 f32         : insert_half(d, option >> 2, encode_two<Fp8>(a, b, 1.0, clamps))
v_cvt_pk_bf8_f32      u32 = f32 f32         : insert_half(d, option >> 2, encode_two<Bf8>(a, b, 1.0, clamps))
v_cvt_sr_fp8_f32      u32 = f32 u32         : insert_byte(d, option >> 2, Fp8::encode(a, clamps, &b))
v_cvt_sr_bf8_f32      u32 = f32 u32         : insert_byte(d, option >> 2, Bf8::encode(a, clamps, &b))
""")

_PLAIN = parse_rows("""
v_cvt_pk_bf16_f32     u32 = f32 f32         : pair(f32_to_bf16(a), f32_to_bf16(b))
v_cvt_pk_f16_f32      u32 = f32 f32         : pair(f32_to_f16(a), f32_to_f16(b))
v_cvt_pkrtz_f16_f32   u32 = f32 f32         : pair(f32_to_f16_toward_zero(a), f32_to_f16_toward_zero(b))
v_cvt_sr_bf16_f32     u32 = f32 u32         : insert_half(d, option >> 2, (bits_of(a) + (b & 0xffff)) >> 16)
v_cvt_sr_f16_f32      u32 = f32 u32         : insert_half(d, option >> 2, f32_to_f16_stochastic(a, b))
v_cvt_pknorm_i16_f16  u32 = f16 f16         : pair(to_signed_unit(a), to_signed_unit(b))
v_cvt_pknorm_u16_f16  u32 = f16 f16         : pair(to_unsigned_unit(a), to_unsigned_unit(b))
v_cvt_pk_i16_i32      u32 = i32 i32         : pair(to_i16(a), to_i16(b))
v_cvt_pk_u16_u32      u32 = u32 u32         : pair(minimum(a, 65535u), minimum(b, 65535u))
v_cvt_pk_i16_f32      u32 = f32 f32         : pair(to_i16(a), to_i16(b))
v_cvt_pk_u16_f32      u32 = f32 f32         : pair(to_u16(a), to_u16(b))
v_cvt_pknorm_i16_f32  u32 = f32 f32         : pair(to_signed_unit(a), to_signed_unit(b))
v_cvt_pknorm_u16_f32  u32 = f32 f32         : pair(to_unsigned_unit(a), to_unsigned_unit(b))
v_bitop3_b32          u32 = u32 u32 u32     : truth_table(a, b, c, option)
v_ashr_pk_i8_i32      u16 = i32 i32 u32     : shifted_bytes(a, b, c, -128, 127)
v_ashr_pk_u8_i32      u16 = i32 i32 u32     : shifted_bytes(a, b, c, 0, 255)
v_add_u32.clamp       u32 = u32 u32         : a + b < a ? ~0u : a + b
v_sub_u32.clamp       u32 = u32 u32         : a > b ? a - b : 0
v_subrev_u32.clamp    u32 = u32 u32         : b > a ? b - a : 0
v_add_i32.clamp       i32 = i32 i32         : saturating_add(a, b)
v_sub_i32.clamp       i32 = i32 i32         : saturating_subtract(a, b)
""")


def _scaled_rows() -> dict[str, Row]:
    """gfx950's conversions with a power-of-two scale taken from the exponent of an fp32 operand."""
    lines = [line for small, kind in (("fp8", "Fp8"), ("bf8", "Bf8")) for line in _scaled_eight_bits(small, kind)]
    return parse_rows("\n".join([*lines, *_scaled_fp4()]))


def _scaled_eight_bits(small: str, kind: str) -> list[str]:
    prefix = "v_cvt_scalef32"
    one = f"{kind}::decode(byte_of(a, option & 3)) * scale_of(b)"
    word = "half_of(a, option & 1), scale_of(b)"
    lines = [
        f"{prefix}_pk_f16_{small} u32 = u32 u32 : decode_halves<{kind}>({word}, false)",
        f"{prefix}_pk_bf16_{small} u32 = u32 u32 : decode_halves<{kind}>({word}, true)",
        f"{prefix}_pk_f32_{small} u64 = u32 u32 : decode_two<{kind}>({word})",
        f"{prefix}_f32_{small} f32 = u32 u32 : static_cast<f32>({one})",
        f"{prefix}_f16_{small} u32 = u32 u32 : insert_half(d, option >> 2, f32_to_f16(static_cast<f32>({one})))",
        f"{prefix}_pk_{small}_f32 u32 = f32 f32 u32 : "
        f"insert_half(d, option >> 3, encode_two<{kind}>(a, b, 1.0 / scale_of(c), clamps))",
    ]
    for wide in ("f32", "f16", "bf16"):
        encoded = f"{kind}::encode(a / scale_of(c), clamps, &b)"
        lines.append(f"{prefix}_sr_{small}_{wide} u32 = {wide} u32 u32 : insert_byte(d, option >> 2, {encoded})")
    for wide in ("f16", "bf16"):
        pair = f"{wide}_to_f32(a & 0xffff), {wide}_to_f32(a >> 16)"
        encoded = f"encode_two<{kind}>({pair}, 1.0 / scale_of(b), clamps)"
        lines.append(f"{prefix}_pk_{small}_{wide} u32 = u32 u32 : insert_half(d, option >> 2, {encoded})")
    return lines


def _scaled_fp4() -> list[str]:
    prefix, codes = "v_cvt_scalef32_pk", "byte_of(a, option & 3), scale_of(b)"
    lines = [
        f"{prefix}_f32_fp4 u64 = u32 u32 : decode_two_fp4({codes})",
        f"{prefix}_f16_fp4 u32 = u32 u32 : decode_pair_fp4({codes}, false)",
        f"{prefix}_bf16_fp4 u32 = u32 u32 : decode_pair_fp4({codes}, true)",
        f"{prefix}_fp4_f32 u32 = f32 f32 u32 : insert_byte(d, option >> 2, encode_two_fp4(a, b, 1.0 / scale_of(c)))",
    ]
    for wide in ("f16", "bf16"):
        encoded = f"encode_two_fp4({wide}_to_f32(a & 0xffff), {wide}_to_f32(a >> 16), 1.0 / scale_of(b))"
        lines.append(f"{prefix}_fp4_{wide} u32 = u32 u32 : insert_byte(d, option >> 2, {encoded})")
    return lines


def _fnuz(row: Row) -> Row:
    expression = row.expression.replace("Fp8", "Fp8Fnuz").replace("Bf8", "Bf8Fnuz")
    return replace(row, name=f"{row.name}.fnuz", expression=expression)


VECTOR = _FP8 | _PLAIN | _scaled_rows() | {f"{name}.fnuz": _fnuz(row) for name, row in _FP8.items()}
