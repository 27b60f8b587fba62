"""Scalar instructions. A second expression, or the result type `scc`, is the new scalar condition."""

from __future__ import annotations

from dsv4gen.emulate.amdgcn.tables.rows import parse_rows

SCALAR = parse_rows("""
s_mov_b32             u32 = u32             : a
s_mov_b64             u64 = u64             : a
s_movk_i32            i32 = s16             : a
s_cmov_b32            u32 = u32             : scc ? a : d
s_cmov_b64            u64 = u64             : scc ? a : d
s_cmovk_i32           i32 = s16             : scc ? a : d
s_cselect_b32         u32 = u32 u32         : scc ? a : b
s_cselect_b64         u64 = u64 u64         : scc ? a : b
s_not_b32             u32 = u32             : ~a ; r != 0
s_not_b64             u64 = u64             : ~a ; r != 0
s_and_b32             u32 = u32 u32         : a & b ; r != 0
s_and_b64             u64 = u64 u64         : a & b ; r != 0
s_or_b32              u32 = u32 u32         : a | b ; r != 0
s_or_b64              u64 = u64 u64         : a | b ; r != 0
s_xor_b32             u32 = u32 u32         : a ^ b ; r != 0
s_xor_b64             u64 = u64 u64         : a ^ b ; r != 0
s_andn2_b32           u32 = u32 u32         : a & ~b ; r != 0
s_andn2_b64           u64 = u64 u64         : a & ~b ; r != 0
s_orn2_b32            u32 = u32 u32         : a | ~b ; r != 0
s_orn2_b64            u64 = u64 u64         : a | ~b ; r != 0
s_nand_b32            u32 = u32 u32         : ~(a & b) ; r != 0
s_nand_b64            u64 = u64 u64         : ~(a & b) ; r != 0
s_nor_b32             u32 = u32 u32         : ~(a | b) ; r != 0
s_nor_b64             u64 = u64 u64         : ~(a | b) ; r != 0
s_xnor_b32            u32 = u32 u32         : ~(a ^ b) ; r != 0
s_xnor_b64            u64 = u64 u64         : ~(a ^ b) ; r != 0

s_add_u32             u32 = u32 u32         : a + b ; r < a
s_sub_u32             u32 = u32 u32         : a - b ; b > a
s_add_i32             u32 = u32 u32         : a + b ; ((a ^ r) & (b ^ r)) >> 31
s_sub_i32             u32 = u32 u32         : a - b ; ((a ^ b) & (a ^ r)) >> 31
s_addc_u32            u32 = u32 u32         : a + b + scc ; static_cast<u64>(a) + b + scc >> 32
s_subb_u32            u32 = u32 u32         : a - b - scc ; static_cast<u64>(b) + scc > a
s_addk_i32            u32 = s16             : d + a ; ((d ^ r) & (static_cast<u32>(a) ^ r)) >> 31
s_mulk_i32            u32 = s16             : d * a
s_mul_i32             u32 = u32 u32         : a * b
s_mul_hi_u32          u32 = u32 u32         : multiply_high(a, b)
s_mul_hi_i32          i32 = i32 i32         : multiply_high(a, b)
s_add_nc_u64          u64 = u64 u64         : a + b
s_sub_nc_u64          u64 = u64 u64         : a - b
s_mul_u64             u64 = u64 u64         : a * b
s_lshl1_add_u32       u32 = u32 u32         : (a << 1) + b ; (static_cast<u64>(a) << 1) + b >> 32 != 0
s_lshl2_add_u32       u32 = u32 u32         : (a << 2) + b ; (static_cast<u64>(a) << 2) + b >> 32 != 0
s_lshl3_add_u32       u32 = u32 u32         : (a << 3) + b ; (static_cast<u64>(a) << 3) + b >> 32 != 0
s_lshl4_add_u32       u32 = u32 u32         : (a << 4) + b ; (static_cast<u64>(a) << 4) + b >> 32 != 0
s_abs_i32             i32 = i32             : a < 0 ? wrapping_negate(a) : a ; r != 0
s_absdiff_i32         i32 = i32 i32         : signed_distance(a, b) ; r != 0
s_min_u32             u32 = u32 u32         : minimum(a, b) ; a < b
s_max_u32             u32 = u32 u32         : maximum(a, b) ; a >= b
s_min_i32             i32 = i32 i32         : minimum(a, b) ; a < b
s_max_i32             i32 = i32 i32         : maximum(a, b) ; a >= b

s_lshl_b32            u32 = u32 u32         : a << (b & 31) ; r != 0
s_lshl_b64            u64 = u64 u32         : a << (b & 63) ; r != 0
s_lshr_b32            u32 = u32 u32         : a >> (b & 31) ; r != 0
s_lshr_b64            u64 = u64 u32         : a >> (b & 63) ; r != 0
s_ashr_i32            i32 = i32 u32         : a >> (b & 31) ; r != 0
s_ashr_i64            i64 = i64 u32         : a >> (b & 63) ; r != 0
s_bfe_u32             u32 = u32 u32         : scalar_field(a, b) ; r != 0
s_bfe_i32             i32 = i32 u32         : scalar_signed_field(a, b) ; r != 0
s_bfe_u64             u64 = u64 u32         : field64(a, b & 63, b >> 16 & 127) ; r != 0
s_bfe_i64             i64 = i64 u32         : signed_field64(a, b & 63, b >> 16 & 127) ; r != 0
s_bfm_b32             u32 = u32 u32         : ((1u << (a & 31)) - 1) << (b & 31)
s_bfm_b64             u64 = u32 u32         : ((1ull << (a & 63)) - 1) << (b & 63)
s_brev_b32            u32 = u32             : reverse_bits(a)
s_brev_b64            u64 = u64             : reverse_bits64(a)
s_bcnt0_i32_b32       u32 = u32             : ones(~a) ; r != 0
s_bcnt0_i32_b64       u32 = u64             : ones64(~a) ; r != 0
s_bcnt1_i32_b32       u32 = u32             : ones(a) ; r != 0
s_bcnt1_i32_b64       u32 = u64             : ones64(a) ; r != 0
s_ff0_i32_b32         u32 = u32             : lowest_one(~a)
s_ff0_i32_b64         u32 = u64             : lowest_one64(~a)
s_ff1_i32_b32         u32 = u32             : lowest_one(a)
s_ff1_i32_b64         u32 = u64             : lowest_one64(a)
s_flbit_i32_b32       u32 = u32             : leading_zeros(a)
s_flbit_i32_b64       u32 = u64             : leading_zeros64(a)
s_flbit_i32           u32 = i32             : sign_length(a)
s_flbit_i32_i64       u32 = i64             : sign_length64(a)
s_sext_i32_i8         i32 = u32             : static_cast<i8>(a)
s_sext_i32_i16        i32 = u32             : static_cast<i16>(a)
s_bitset0_b32         u32 = u32             : d & ~(1u << (a & 31))
s_bitset0_b64         u64 = u32             : d & ~(1ull << (a & 63))
s_bitset1_b32         u32 = u32             : d | 1u << (a & 31)
s_bitset1_b64         u64 = u32             : d | 1ull << (a & 63)
s_bitreplicate_b64_b32 u64 = u32            : double_bits(a)
s_quadmask_b32        u32 = u32             : any_of_fours(a) ; r != 0
s_quadmask_b64        u64 = u64             : any_of_fours64(a) ; r != 0
s_wqm_b32             u32 = u32             : whole_fours(a) ; r != 0
s_wqm_b64             u64 = u64             : whole_fours64(a) ; r != 0
s_pack_ll_b32_b16     u32 = u32 u32         : pair(a, b)
s_pack_lh_b32_b16     u32 = u32 u32         : pair(a, b >> 16)
s_pack_hh_b32_b16     u32 = u32 u32         : pair(a >> 16, b >> 16)
s_pack_hl_b32_b16     u32 = u32 u32         : pair(a >> 16, b)

s_bitcmp0_b32         scc = u32 u32         : !(a >> (b & 31) & 1)
s_bitcmp0_b64         scc = u64 u32         : !(a >> (b & 63) & 1)
s_bitcmp1_b32         scc = u32 u32         : a >> (b & 31) & 1
s_bitcmp1_b64         scc = u64 u32         : a >> (b & 63) & 1
s_cmp_eq_u64          scc = u64 u64         : a == b
s_cmp_lg_u64          scc = u64 u64         : a != b

s_add_f32             f32 = f32 f32         : a + b
s_sub_f32             f32 = f32 f32         : a - b
s_mul_f32             f32 = f32 f32         : a * b
s_min_f32             f32 = f32 f32         : min_number(a, b)
s_max_f32             f32 = f32 f32         : max_number(a, b)
s_minimum_f32         f32 = f32 f32         : min_or_nan(a, b)
s_maximum_f32         f32 = f32 f32         : max_or_nan(a, b)
s_fmac_f32            f32 = f32 f32         : fused(a, b, d)
s_fmaak_f32           f32 = f32 f32 f32     : fused(a, b, c)
s_fmamk_f32           f32 = f32 f32 f32     : fused(a, b, c)
s_ceil_f32            f32 = f32             : __builtin_ceilf(a)
s_floor_f32           f32 = f32             : __builtin_floorf(a)
s_trunc_f32           f32 = f32             : __builtin_truncf(a)
s_rndne_f32           f32 = f32             : __builtin_rintf(a)
s_cvt_f32_u32         f32 = u32             : static_cast<f32>(a)
s_cvt_f32_i32         f32 = i32             : static_cast<f32>(a)
s_cvt_u32_f32         u32 = f32             : to_u32(a)
s_cvt_i32_f32         i32 = f32             : to_i32(a)
s_cvt_f16_f32         u32 = f32             : f32_to_f16(a)
s_cvt_f32_f16         f32 = f16             : a
s_cvt_hi_f32_f16      f32 = u32             : f16_to_f32(a >> 16)
s_cvt_pk_rtz_f16_f32  u32 = f32 f32         : pair(f32_to_f16_toward_zero(a), f32_to_f16_toward_zero(b))
s_add_f16             f16 = f16 f16         : a + b
s_sub_f16             f16 = f16 f16         : a - b
s_mul_f16             f16 = f16 f16         : a * b
s_min_f16             f16 = f16 f16         : min_number(a, b)
s_max_f16             f16 = f16 f16         : max_number(a, b)
s_minimum_f16         f16 = f16 f16         : min_or_nan(a, b)
s_maximum_f16         f16 = f16 f16         : max_or_nan(a, b)
s_fmac_f16            f16 = f16 f16         : f16_to_f32(fused_f16(a, b, d))
s_ceil_f16            f16 = f16             : __builtin_ceilf(a)
s_floor_f16           f16 = f16             : __builtin_floorf(a)
s_trunc_f16           f16 = f16             : __builtin_truncf(a)
s_rndne_f16           f16 = f16             : __builtin_rintf(a)
v_s_exp_f16           f16 = f16             : __builtin_exp2f(a)
v_s_log_f16           f16 = f16             : __builtin_log2f(a)
v_s_rcp_f16           f16 = f16             : 1.0f / a
v_s_rsq_f16           f16 = f16             : 1.0f / __builtin_sqrtf(a)
v_s_sqrt_f16          f16 = f16             : __builtin_sqrtf(a)
v_s_exp_f32           f32 = f32             : exp2_unit(a)
v_s_log_f32           f32 = f32             : log2_unit(a)
v_s_rcp_f32           f32 = f32             : reciprocal(a)
v_s_rsq_f32           f32 = f32             : reciprocal_root(a)
v_s_sqrt_f32          f32 = f32             : root(a)
""")

_COMPARE = {"eq": "a == b", "lg": "a != b", "gt": "a > b", "ge": "a >= b", "lt": "a < b", "le": "a <= b"}
_FLOAT_COMPARE = {
    **_COMPARE,
    "lg": "a < b || a > b",
    "o": "a == a && b == b",
    "u": "a != a || b != b",
    "neq": "!(a == b)",
    "nlg": "!(a < b || a > b)",
    "ngt": "!(a > b)",
    "nge": "!(a >= b)",
    "nlt": "!(a < b)",
    "nle": "!(a <= b)",
}
SCALAR |= parse_rows(
    "\n".join(
        [f"s_cmp_{name}_{t} scc = {t} {t} : {e}" for t in ("i32", "u32") for name, e in _COMPARE.items()]
        + [f"s_cmp_{name}_{t} scc = {t} {t} : {e}" for t in ("f32", "f16") for name, e in _FLOAT_COMPARE.items()]
        + [f"s_cmpk_{name}_i32 scc = i32 s16 : {e}" for name, e in _COMPARE.items()]
        + [f"s_cmpk_{name}_u32 scc = u32 u16 : {e}" for name, e in _COMPARE.items()]
    )
)

#: `s_X_saveexec`: the result is the old EXEC (x), the expression the new one; SCC tells whether it is not 0.
SAVE_EXEC = parse_rows("""
s_and_saveexec        exec = mask           : a & x
s_or_saveexec         exec = mask           : a | x
s_xor_saveexec        exec = mask           : a ^ x
s_nand_saveexec       exec = mask           : ~(a & x)
s_nor_saveexec        exec = mask           : ~(a | x)
s_xnor_saveexec       exec = mask           : ~(a ^ x)
s_andn2_saveexec      exec = mask           : a & ~x
s_orn2_saveexec       exec = mask           : a | ~x
s_andn1_saveexec      exec = mask           : ~a & x
s_orn1_saveexec       exec = mask           : ~a | x
s_andn1_wrexec        exec = mask           : ~a & x
s_andn2_wrexec        exec = mask           : a & ~x
""")
