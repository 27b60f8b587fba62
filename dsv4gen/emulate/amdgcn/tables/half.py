"""Vector instructions on 16 bits: integers, fp16. Where the result lands in the register, and what becomes of the
other half, is the lowering's business (it depends on the generation)."""

from __future__ import annotations

from dsv4gen.emulate.amdgcn.tables.rows import parse_rows

VECTOR = parse_rows("""
v_mov_b16             u16 = u16             : a
v_not_b16             u16 = u16             : ~a
v_and_b16             u16 = u16 u16         : a & b
v_or_b16              u16 = u16 u16         : a | b
v_xor_b16             u16 = u16 u16         : a ^ b
v_cndmask_b16         u16 = u16 u16 mask    : c ? b : a
v_lshlrev_b16         u16 = u16 u16         : b << (a & 15)
v_lshrrev_b16         u16 = u16 u16         : b >> (a & 15)
v_ashrrev_i16         i16 = u16 i16         : b >> (a & 15)
v_add_u16             u16 = u16 u16         : a + b
v_sub_u16             u16 = u16 u16         : a - b
v_subrev_u16          u16 = u16 u16         : b - a
v_add_i16             u16 = u16 u16         : a + b
v_sub_i16             u16 = u16 u16         : a - b
v_add_u16.clamp       u16 = u16 u16         : minimum(a + b, 65535u)
v_sub_u16.clamp       u16 = u16 u16         : a > b ? a - b : 0
v_add_i16.clamp       i16 = i16 i16         : clamp_to(a + b, -32768, 32767)
v_sub_i16.clamp       i16 = i16 i16         : clamp_to(a - b, -32768, 32767)
v_mul_lo_u16          u16 = u16 u16         : a * b
v_mad_u16             u16 = u16 u16 u16     : a * b + c
v_mad_i16             u16 = u16 u16 u16     : a * b + c
v_min_u16             u16 = u16 u16         : minimum(a, b)
v_max_u16             u16 = u16 u16         : maximum(a, b)
v_min_i16             i16 = i16 i16         : minimum(a, b)
v_max_i16             i16 = i16 i16         : maximum(a, b)
v_min3_u16            u16 = u16 u16 u16     : minimum(minimum(a, b), c)
v_max3_u16            u16 = u16 u16 u16     : maximum(maximum(a, b), c)
v_min3_i16            i16 = i16 i16 i16     : minimum(minimum(a, b), c)
v_max3_i16            i16 = i16 i16 i16     : maximum(maximum(a, b), c)
v_med3_u16            u16 = u16 u16 u16     : median(a, b, c)
v_med3_i16            i16 = i16 i16 i16     : median(a, b, c)
v_bitop3_b16          u16 = u16 u16 u16     : truth_table(a, b, c, option)

v_add_f16             f16 = f16 f16         : a + b
v_sub_f16             f16 = f16 f16         : a - b
v_subrev_f16          f16 = f16 f16         : b - a
v_mul_f16             f16 = f16 f16         : a * b
v_mac_f16             f16 = f16 f16         : f16_to_f32(f32_to_f16(a * b)) + d
v_mad_f16             f16 = f16 f16 f16     : f16_to_f32(f32_to_f16(a * b)) + c
v_madmk_f16           f16 = f16 f16 f16     : f16_to_f32(f32_to_f16(a * b)) + c
v_madak_f16           f16 = f16 f16 f16     : f16_to_f32(f32_to_f16(a * b)) + c
v_fma_f16             f16 = f16 f16 f16     : f16_to_f32(fused_f16(a, b, c))
v_fmac_f16            f16 = f16 f16         : f16_to_f32(fused_f16(a, b, d))
v_fmamk_f16           f16 = f16 f16 f16     : f16_to_f32(fused_f16(a, b, c))
v_fmaak_f16           f16 = f16 f16 f16     : f16_to_f32(fused_f16(a, b, c))
v_max_f16             f16 = f16 f16         : max_number(a, b)
v_min_f16             f16 = f16 f16         : min_number(a, b)
v_max3_f16            f16 = f16 f16 f16     : max_number(max_number(a, b), c)
v_min3_f16            f16 = f16 f16 f16     : min_number(min_number(a, b), c)
v_med3_f16            f16 = f16 f16 f16     : median_number(a, b, c)
v_minmax_f16          f16 = f16 f16 f16     : max_number(min_number(a, b), c)
v_maxmin_f16          f16 = f16 f16 f16     : min_number(max_number(a, b), c)
v_maximum_f16         f16 = f16 f16         : max_or_nan(a, b)
v_minimum_f16         f16 = f16 f16         : min_or_nan(a, b)
v_maximum3_f16        f16 = f16 f16 f16     : max_or_nan(max_or_nan(a, b), c)
v_minimum3_f16        f16 = f16 f16 f16     : min_or_nan(min_or_nan(a, b), c)
v_maximumminimum_f16  f16 = f16 f16 f16     : min_or_nan(max_or_nan(a, b), c)
v_minimummaximum_f16  f16 = f16 f16 f16     : max_or_nan(min_or_nan(a, b), c)
v_exp_f16             f16 = f16             : __builtin_exp2f(a)
v_log_f16             f16 = f16             : __builtin_log2f(a)
v_rcp_f16             f16 = f16             : 1.0f / a
v_rsq_f16             f16 = f16             : 1.0f / __builtin_sqrtf(a)
v_sqrt_f16            f16 = f16             : __builtin_sqrtf(a)
v_sin_f16             f16 = f16             : sine_of_turns(a)
v_cos_f16             f16 = f16             : cosine_of_turns(a)
v_trunc_f16           f16 = f16             : __builtin_truncf(a)
v_ceil_f16            f16 = f16             : __builtin_ceilf(a)
v_floor_f16           f16 = f16             : __builtin_floorf(a)
v_rndne_f16           f16 = f16             : __builtin_rintf(a)
v_fract_f16           f16 = f16             : minimum(a - __builtin_floorf(a), 0x1.ffcp-1f)
v_ldexp_f16           f16 = f16 i16         : scaled(a, b)
v_frexp_exp_i16_f16   i16 = f16             : exponent_of(a)
v_frexp_mant_f16      f16 = f16             : static_cast<f32>(mantissa_of(a))
v_div_fixup_f16       f16 = f16 f16 f16     : division_fixup(a, b, c)

v_cvt_f32_f16         f32 = f16             : a
v_cvt_f16_f32         f16 = f32             : a
v_cvt_f32_bf16        f32 = bf16            : a
v_cvt_f16_u16         f16 = u16             : static_cast<f32>(a)
v_cvt_f16_i16         f16 = i16             : static_cast<f32>(a)
v_cvt_u16_f16         u16 = f16             : to_u16(a)
v_cvt_i16_f16         i16 = f16             : to_i16(a)
v_cvt_i32_i16         i32 = i16             : a
v_cvt_u32_u16         u32 = u16             : a
v_cvt_norm_i16_f16    i16 = f16             : to_signed_unit(a)
v_cvt_norm_u16_f16    u16 = f16             : to_unsigned_unit(a)
v_sat_pk_u8_i16       u16 = u32             : saturated_bytes(a)
v_pack_b32_f16        u32 = u16 u16         : pair(a, b)
""")

#: instructions that leave the result's upper half alone on gfx9 too
KEEP_HIGH_HALF = ("v_fma_f16", "v_mad_f16", "v_mad_u16", "v_mad_i16", "v_div_fixup_f16")
