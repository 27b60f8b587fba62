"""Vector float instructions in fp32 and fp64, and their conversions to integers."""

from __future__ import annotations

from dsv4gen.emulate.amdgcn.tables.rows import parse_rows

VECTOR = parse_rows("""
v_add_f32             f32 = f32 f32         : a + b
v_sub_f32             f32 = f32 f32         : a - b
v_subrev_f32          f32 = f32 f32         : b - a
v_mul_f32             f32 = f32 f32         : a * b
v_mul_legacy_f32      f32 = f32 f32         : a == 0 || b == 0 ? 0.0f : a * b
v_mac_f32             f32 = f32 f32         : a * b + d
v_mad_f32             f32 = f32 f32 f32     : a * b + c
v_madmk_f32           f32 = f32 f32 f32     : a * b + c
v_madak_f32           f32 = f32 f32 f32     : a * b + c
v_fma_f32             f32 = f32 f32 f32     : fused(a, b, c)
v_fma_legacy_f32      f32 = f32 f32 f32     : a == 0 || b == 0 ? c : fused(a, b, c)
v_fmac_f32            f32 = f32 f32         : fused(a, b, d)
v_fmac_legacy_f32     f32 = f32 f32         : a == 0 || b == 0 ? d : fused(a, b, d)
v_fmamk_f32           f32 = f32 f32 f32     : fused(a, b, c)
v_fmaak_f32           f32 = f32 f32 f32     : fused(a, b, c)

v_max_f32             f32 = f32 f32         : max_number(a, b)
v_min_f32             f32 = f32 f32         : min_number(a, b)
v_max3_f32            f32 = f32 f32 f32     : max_number(max_number(a, b), c)
v_min3_f32            f32 = f32 f32 f32     : min_number(min_number(a, b), c)
v_med3_f32            f32 = f32 f32 f32     : median_number(a, b, c)
v_minmax_f32          f32 = f32 f32 f32     : max_number(min_number(a, b), c)
v_maxmin_f32          f32 = f32 f32 f32     : min_number(max_number(a, b), c)
v_maximum_f32         f32 = f32 f32         : max_or_nan(a, b)
v_minimum_f32         f32 = f32 f32         : min_or_nan(a, b)
v_maximum3_f32        f32 = f32 f32 f32     : max_or_nan(max_or_nan(a, b), c)
v_minimum3_f32        f32 = f32 f32 f32     : min_or_nan(min_or_nan(a, b), c)
v_maximumminimum_f32  f32 = f32 f32 f32     : min_or_nan(max_or_nan(a, b), c)
v_minimummaximum_f32  f32 = f32 f32 f32     : max_or_nan(min_or_nan(a, b), c)

v_exp_f32             f32 = f32             : exp2_unit(a)
v_log_f32             f32 = f32             : log2_unit(a)
v_rcp_f32             f32 = f32             : reciprocal(a)
v_rcp_iflag_f32       f32 = f32             : reciprocal(a)
v_rsq_f32             f32 = f32             : reciprocal_root(a)
v_sqrt_f32            f32 = f32             : root(a)
v_sin_f32             f32 = f32             : sine_of_turns(a)
v_cos_f32             f32 = f32             : cosine_of_turns(a)
v_trunc_f32           f32 = f32             : __builtin_truncf(a)
v_ceil_f32            f32 = f32             : __builtin_ceilf(a)
v_floor_f32           f32 = f32             : __builtin_floorf(a)
v_rndne_f32           f32 = f32             : __builtin_rintf(a)
v_fract_f32           f32 = f32             : fraction(a)
v_ldexp_f32           f32 = f32 i32         : scaled(a, b)
v_frexp_exp_i32_f32   i32 = f32             : exponent_of(a)
v_frexp_mant_f32      f32 = f32             : static_cast<f32>(mantissa_of(a))
v_div_scale_f32       f32 mask = f32 f32 f32 : division_scale(a, b, c).value ; division_scale(a, b, c).flag
v_div_fmas_f32        f32 = f32 f32 f32 mask : division_fused(a, b, c, e, 64)
v_div_fixup_f32       f32 = f32 f32 f32     : division_fixup(a, b, c)

v_cvt_f32_u32         f32 = u32             : static_cast<f32>(a)
v_cvt_f32_i32         f32 = i32             : static_cast<f32>(a)
v_cvt_u32_f32         u32 = f32             : to_u32(a)
v_cvt_i32_f32         i32 = f32             : to_i32(a)
v_cvt_rpi_i32_f32     i32 = f32             : to_i32(__builtin_floorf(a + 0.5f))
v_cvt_flr_i32_f32     i32 = f32             : to_i32(__builtin_floorf(a))
v_cvt_f32_ubyte0      f32 = u32             : static_cast<f32>(a & 255)
v_cvt_f32_ubyte1      f32 = u32             : static_cast<f32>(a >> 8 & 255)
v_cvt_f32_ubyte2      f32 = u32             : static_cast<f32>(a >> 16 & 255)
v_cvt_f32_ubyte3      f32 = u32             : static_cast<f32>(a >> 24)
v_cvt_off_f32_i4      f32 = u32             : static_cast<f32>(static_cast<i32>(a << 28) >> 28) * 0.0625f
v_cvt_pk_u8_f32       u32 = f32 u32 u32     : insert_byte(c, b, to_u8(a))

v_add_f64             f64 = f64 f64         : a + b
v_mul_f64             f64 = f64 f64         : a * b
v_fma_f64             f64 = f64 f64 f64     : fused(a, b, c)
v_fmac_f64            f64 = f64 f64         : fused(a, b, d)
v_max_f64             f64 = f64 f64         : max_number(a, b)
v_min_f64             f64 = f64 f64         : min_number(a, b)
v_maximum_f64         f64 = f64 f64         : a != a ? a : b != b ? b : max_number(a, b)
v_minimum_f64         f64 = f64 f64         : a != a ? a : b != b ? b : min_number(a, b)
v_rcp_f64             f64 = f64             : 1.0 / a
v_rsq_f64             f64 = f64             : 1.0 / __builtin_sqrt(a)
v_sqrt_f64            f64 = f64             : __builtin_sqrt(a)
v_trunc_f64           f64 = f64             : __builtin_trunc(a)
v_ceil_f64            f64 = f64             : __builtin_ceil(a)
v_floor_f64           f64 = f64             : __builtin_floor(a)
v_rndne_f64           f64 = f64             : __builtin_rint(a)
v_fract_f64           f64 = f64             : fraction(a)
v_ldexp_f64           f64 = f64 i32         : scaled(a, b)
v_frexp_exp_i32_f64   i32 = f64             : exponent_of(a)
v_frexp_mant_f64      f64 = f64             : mantissa_of(a)
v_div_scale_f64       f64 mask = f64 f64 f64 : division_scale(a, b, c).value ; division_scale(a, b, c).flag
v_div_fmas_f64        f64 = f64 f64 f64 mask : division_fused(a, b, c, e, 128)
v_div_fixup_f64       f64 = f64 f64 f64     : division_fixup(a, b, c)
v_cvt_f64_f32         f64 = f32             : static_cast<f64>(a)
v_cvt_f32_f64         f32 = f64             : static_cast<f32>(a)
v_cvt_f64_u32         f64 = u32             : static_cast<f64>(a)
v_cvt_f64_i32         f64 = i32             : static_cast<f64>(a)
v_cvt_u32_f64         u32 = f64             : to_u32(a)
v_cvt_i32_f64         i32 = f64             : to_i32(a)
""")
