"""Packed instructions (VOP3P). Types with `x2` are pairs: the expression holds for each half. Sources have op_sel,
op_sel_hi, neg_lo and neg_hi applied already; `mix` sources are fp32, or an fp16 half read as fp32."""

from __future__ import annotations

from dsv4gen.emulate.amdgcn.tables.rows import parse_rows

VECTOR = parse_rows("""
v_pk_add_f16          f16x2 = f16x2 f16x2       : a + b
v_pk_mul_f16          f16x2 = f16x2 f16x2       : a * b
v_pk_fma_f16          f16x2 = f16x2 f16x2 f16x2 : f16_to_f32(fused_f16(a, b, c))
v_pk_fmac_f16         f16x2 = f16x2 f16x2       : f16_to_f32(fused_f16(a, b, d))
v_pk_max_f16          f16x2 = f16x2 f16x2       : max_number(a, b)
v_pk_min_f16          f16x2 = f16x2 f16x2       : min_number(a, b)
v_pk_maximum_f16      f16x2 = f16x2 f16x2       : max_or_nan(a, b)
v_pk_minimum_f16      f16x2 = f16x2 f16x2       : min_or_nan(a, b)
v_pk_maximum3_f16     f16x2 = f16x2 f16x2 f16x2 : max_or_nan(max_or_nan(a, b), c)
v_pk_minimum3_f16     f16x2 = f16x2 f16x2 f16x2 : min_or_nan(min_or_nan(a, b), c)
v_pk_add_u16          u16x2 = u16x2 u16x2       : a + b
v_pk_sub_u16          u16x2 = u16x2 u16x2       : a - b
v_pk_add_i16          u16x2 = u16x2 u16x2       : a + b
v_pk_sub_i16          u16x2 = u16x2 u16x2       : a - b
v_pk_add_u16.clamp    u16x2 = u16x2 u16x2       : minimum(a + b, 65535u)
v_pk_sub_u16.clamp    u16x2 = u16x2 u16x2       : a > b ? a - b : 0
v_pk_add_i16.clamp    i16x2 = i16x2 i16x2       : clamp_to(a + b, -32768, 32767)
v_pk_sub_i16.clamp    i16x2 = i16x2 i16x2       : clamp_to(a - b, -32768, 32767)
v_pk_mul_lo_u16       u16x2 = u16x2 u16x2       : a * b
v_pk_mad_u16          u16x2 = u16x2 u16x2 u16x2 : a * b + c
v_pk_mad_i16          u16x2 = u16x2 u16x2 u16x2 : a * b + c
v_pk_min_u16          u16x2 = u16x2 u16x2       : minimum(a, b)
v_pk_max_u16          u16x2 = u16x2 u16x2       : maximum(a, b)
v_pk_min_i16          i16x2 = i16x2 i16x2       : minimum(a, b)
v_pk_max_i16          i16x2 = i16x2 i16x2       : maximum(a, b)
v_pk_lshlrev_b16      u16x2 = u16x2 u16x2       : b << (a & 15)
v_pk_lshrrev_b16      u16x2 = u16x2 u16x2       : b >> (a & 15)
v_pk_ashrrev_i16      i16x2 = i16x2 i16x2       : b >> (a & 15)

v_pk_add_f32          f32x2 = f32x2 f32x2       : a + b
v_pk_mul_f32          f32x2 = f32x2 f32x2       : a * b
v_pk_fma_f32          f32x2 = f32x2 f32x2 f32x2 : fused(a, b, c)

v_fma_mix_f32         f32 = mix mix mix         : fused(a, b, c)
v_fma_mixlo_f16       f16 = mix mix mix         : fused(a, b, c)
v_fma_mixhi_f16       f16 = mix mix mix         : fused(a, b, c)

v_dot2_f32_f16        f32 = f16x2 f16x2 f32     : dot_f16(a, b, c)
v_dot2_f32_bf16       f32 = f16x2 f16x2 f32     : dot_bf16(a, b, c)
v_dot2c_f32_f16       f32 = u32 u32             : dot_f16(a, b, d)
v_dot2c_f32_bf16      f32 = u32 u32             : dot_bf16(a, b, d)
v_dot2_f16_f16        f16 = f16x2 f16x2 f16     : dot_f16(a, b, c)
v_dot2_bf16_bf16      bf16 = f16x2 f16x2 bf16   : dot_bf16(a, b, c)
v_dot2_i32_i16        i32 = u16x2 u16x2 i32     : dot_i16(a, b, c)
v_dot2_u32_u16        u32 = u16x2 u16x2 u32     : half_of(a, 0) * half_of(b, 0) + half_of(a, 1) * half_of(b, 1) + c
v_dot2c_i32_i16       i32 = u32 u32             : dot_i16(a, b, d)
v_dot4_i32_i8         i32 = u32 u32 i32         : dot_bytes(a, b, c, true, true)
v_dot4_u32_u8         i32 = u32 u32 i32         : dot_bytes(a, b, c, false, false)
v_dot8_i32_i4         i32 = u32 u32 i32         : dot_nibbles(a, b, c, true, true)
v_dot8_u32_u4         i32 = u32 u32 i32         : dot_nibbles(a, b, c, false, false)
v_dot4_i32_iu8        i32 = u32 u32 i32         : dot_bytes(a, b, c, option & 1, option & 2)
v_dot8_i32_iu4        i32 = u32 u32 i32         : dot_nibbles(a, b, c, option & 1, option & 2)
v_dot4_f32_fp8_fp8    f32 = u32 u32 f32         : dot_small<Fp8, Fp8>(a, b, c)
v_dot4_f32_fp8_bf8    f32 = u32 u32 f32         : dot_small<Fp8, Bf8>(a, b, c)
v_dot4_f32_bf8_fp8    f32 = u32 u32 f32         : dot_small<Bf8, Fp8>(a, b, c)
v_dot4_f32_bf8_bf8    f32 = u32 u32 f32         : dot_small<Bf8, Bf8>(a, b, c)
""")
