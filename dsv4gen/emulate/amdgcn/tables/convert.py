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
    lines = []
    sources = {"f32": ("u64", "bits"), "f16": ("u32", "f16_to_f32"), "bf16": ("u32", "bf16_to_f32")}
    for small, kind in (("fp8", "Fp8"), ("bf8", "Bf8")):
        for wide, is_bf16 in (("f16", "false"), ("bf16", "true")):
            lines.append(
                f"v_cvt_scalef32_pk_{wide}_{small} u32 = u32 u32 : "
                f"decode_halves<{kind}>(half_of(a, option & 1), scale_of(b), {is_bf16})"
            )
        lines.append(
            f"v_cvt_scalef32_pk_f32_{small} u64 = u32 u32 : decode_two<{kind}>(half_of(a, option & 1), scale_of(b))"
        )
        lines.append(
            f"v_cvt_scalef32_f32_{small} f32 = u32 u32 : "
            f"static_cast<f32>({kind}::decode(byte_of(a, option & 3)) * scale_of(b))"
        )
        lines.append(
            f"v_cvt_scalef32_f16_{small} u32 = u32 u32 : insert_half(d, option >> 2, "
            f"f32_to_f16(static_cast<f32>({kind}::decode(byte_of(a, option & 3)) * scale_of(b))))"
        )
        lines.append(
            f"v_cvt_scalef32_pk_{small}_f32 u32 = f32 f32 u32 : "
            f"insert_half(d, option >> 3, encode_two<{kind}>(a, b, 1.0 / scale_of(c), clamps))"
        )
        lines.append(
            f"v_cvt_scalef32_sr_{small}_f32 u32 = f32 u32 u32 : "
            f"insert_byte(d, option >> 2, {kind}::encode(a / scale_of(c), clamps, &b))"
        )
        for wide in ("f16", "bf16"):
            widen = sources[wide][1]
            lines.append(
                f"v_cvt_scalef32_pk_{small}_{wide} u32 = u32 u32 : insert_half(d, option >> 2, "
                f"encode_two<{kind}>({widen}(a & 0xffff), {widen}(a >> 16), 1.0 / scale_of(b), clamps))"
            )
            lines.append(
                f"v_cvt_scalef32_sr_{small}_{wide} u32 = {wide} u32 u32 : "
                f"insert_byte(d, option >> 2, {kind}::encode(a / scale_of(c), clamps, &b))"
            )
    lines += [
        "v_cvt_scalef32_pk_f32_fp4 u64 = u32 u32 : decode_two_fp4(byte_of(a, option & 3), scale_of(b))",
        "v_cvt_scalef32_pk_f16_fp4 u32 = u32 u32 : decode_pair_fp4(byte_of(a, option & 3), scale_of(b), false)",
        "v_cvt_scalef32_pk_bf16_fp4 u32 = u32 u32 : decode_pair_fp4(byte_of(a, option & 3), scale_of(b), true)",
        "v_cvt_scalef32_pk_fp4_f32 u32 = f32 f32 u32 : "
        "insert_byte(d, option >> 2, encode_two_fp4(a, b, 1.0 / scale_of(c)))",
        "v_cvt_scalef32_pk_fp4_f16 u32 = u32 u32 : insert_byte(d, option >> 2, "
        "encode_two_fp4(f16_to_f32(a & 0xffff), f16_to_f32(a >> 16), 1.0 / scale_of(b)))",
        "v_cvt_scalef32_pk_fp4_bf16 u32 = u32 u32 : insert_byte(d, option >> 2, "
        "encode_two_fp4(bf16_to_f32(a & 0xffff), bf16_to_f32(a >> 16), 1.0 / scale_of(b)))",
    ]
    return parse_rows("\n".join(lines))


def _fnuz(row: Row) -> Row:
    expression = row.expression.replace("Fp8", "Fp8Fnuz").replace("Bf8", "Bf8Fnuz")
    return replace(row, name=f"{row.name}.fnuz", expression=expression)


VECTOR = _FP8 | _PLAIN | _scaled_rows() | {f"{name}.fnuz": _fnuz(row) for name, row in _FP8.items()}
