"""Vector integer instructions, 32 and 64 bits."""

from __future__ import annotations

from dsv4gen.emulate.amdgcn.tables.rows import parse_rows

VECTOR = parse_rows("""
v_mov_b32             u32 = u32             : a
v_mov_b64             u64 = u64             : a
v_accvgpr_read_b32    u32 = u32             : a
v_accvgpr_write_b32   u32 = u32             : a
v_accvgpr_mov_b32     u32 = u32             : a
v_not_b32             u32 = u32             : ~a
v_and_b32             u32 = u32 u32         : a & b
v_or_b32              u32 = u32 u32         : a | b
v_xor_b32             u32 = u32 u32         : a ^ b
v_xnor_b32            u32 = u32 u32         : ~(a ^ b)
v_or3_b32             u32 = u32 u32 u32     : a | b | c
v_xor3_b32            u32 = u32 u32 u32     : a ^ b ^ c
v_and_or_b32          u32 = u32 u32 u32     : (a & b) | c
v_bfi_b32             u32 = u32 u32 u32     : (a & b) | (~a & c)
v_cndmask_b32         u32 = u32 u32 mask    : c ? b : a

v_lshlrev_b32         u32 = u32 u32         : b << (a & 31)
v_lshrrev_b32         u32 = u32 u32         : b >> (a & 31)
v_ashrrev_i32         i32 = u32 i32         : b >> (a & 31)
v_lshlrev_b64         u64 = u32 u64         : b << (a & 63)
v_lshrrev_b64         u64 = u32 u64         : b >> (a & 63)
v_ashrrev_i64         i64 = u32 i64         : b >> (a & 63)
v_lshl_or_b32         u32 = u32 u32 u32     : (a << (b & 31)) | c
v_lshl_add_u32        u32 = u32 u32 u32     : (a << (b & 31)) + c
v_lshl_add_u64        u64 = u64 u32 u64     : (a << (b & 7)) + c
v_add_lshl_u32        u32 = u32 u32 u32     : (a + b) << (c & 31)
v_alignbit_b32        u32 = u32 u32 u32     : static_cast<u32>((static_cast<u64>(a) << 32 | b) >> (c & 31))
v_alignbyte_b32       u32 = u32 u32 u32     : static_cast<u32>((static_cast<u64>(a) << 32 | b) >> 8 * (c & 3))
v_perm_b32            u32 = u32 u32 u32     : permute_bytes(a, b, c)

v_add_u32             u32 = u32 u32         : a + b
v_sub_u32             u32 = u32 u32         : a - b
v_subrev_u32          u32 = u32 u32         : b - a
v_add_i32             u32 = u32 u32         : a + b
v_sub_i32             u32 = u32 u32         : a - b
v_add3_u32            u32 = u32 u32 u32     : a + b + c
v_xad_u32             u32 = u32 u32 u32     : (a ^ b) + c
v_add_co_u32          u32 mask = u32 u32    : a + b ; r < a
v_sub_co_u32          u32 mask = u32 u32    : a - b ; b > a
v_subrev_co_u32       u32 mask = u32 u32    : b - a ; a > b
v_addc_co_u32         u32 mask = u32 u32 mask : a + b + c ; r < a || (c && r == a)
v_subb_co_u32         u32 mask = u32 u32 mask : a - b - c ; b > a || (c && b == a)
v_subbrev_co_u32      u32 mask = u32 u32 mask : b - a - c ; a > b || (c && a == b)

v_mul_lo_u32          u32 = u32 u32         : a * b
v_mul_hi_u32          u32 = u32 u32         : multiply_high(a, b)
v_mul_hi_i32          i32 = i32 i32         : multiply_high(a, b)
v_mul_u32_u24         u32 = u32 u32         : low24(a) * low24(b)
v_mul_hi_u32_u24      u32 = u32 u32         : multiply_high(low24(a), low24(b))
v_mul_i32_i24         i32 = i32 i32         : wrapping_multiply(signed24(a), signed24(b))
v_mul_hi_i32_i24      i32 = i32 i32         : multiply_high(signed24(a), signed24(b))
v_mad_u32_u24         u32 = u32 u32 u32     : low24(a) * low24(b) + c
v_mad_i32_i24         i32 = i32 i32 i32     : wrapping_add(wrapping_multiply(signed24(a), signed24(b)), c)
v_mad_u64_u32         u64 mask = u32 u32 u64 : static_cast<u64>(a) * b + c ; r < c
v_mad_i64_i32         i64 mask = i32 i32 i64 : multiply_add(a, b, c) ; (static_cast<i64>(a) * b < 0) != (r < c)

v_min_u32             u32 = u32 u32         : minimum(a, b)
v_max_u32             u32 = u32 u32         : maximum(a, b)
v_min_i32             i32 = i32 i32         : minimum(a, b)
v_max_i32             i32 = i32 i32         : maximum(a, b)
v_min3_u32            u32 = u32 u32 u32     : minimum(minimum(a, b), c)
v_max3_u32            u32 = u32 u32 u32     : maximum(maximum(a, b), c)
v_min3_i32            i32 = i32 i32 i32     : minimum(minimum(a, b), c)
v_max3_i32            i32 = i32 i32 i32     : maximum(maximum(a, b), c)
v_med3_u32            u32 = u32 u32 u32     : median(a, b, c)
v_med3_i32            i32 = i32 i32 i32     : median(a, b, c)
v_minmax_u32          u32 = u32 u32 u32     : maximum(minimum(a, b), c)
v_maxmin_u32          u32 = u32 u32 u32     : minimum(maximum(a, b), c)
v_minmax_i32          i32 = i32 i32 i32     : maximum(minimum(a, b), c)
v_maxmin_i32          i32 = i32 i32 i32     : minimum(maximum(a, b), c)

v_bfe_u32             u32 = u32 u32 u32     : field(a, b, c)
v_bfe_i32             i32 = u32 u32 u32     : signed_field(a, b, c)
v_bfm_b32             u32 = u32 u32         : ((1u << (a & 31)) - 1) << (b & 31)
v_bcnt_u32_b32        u32 = u32 u32         : ones(a) + b
v_bfrev_b32           u32 = u32             : reverse_bits(a)
v_ffbh_u32            u32 = u32             : leading_zeros(a)
v_ffbh_i32            u32 = i32             : sign_length(a)
v_ffbl_b32            u32 = u32             : lowest_one(a)
v_mbcnt_lo_u32_b32    u32 = u32 u32         : ones(a & lower_lanes(lane)) + b
v_mbcnt_hi_u32_b32    u32 = u32 u32         : ones(a & (lane < 32 ? 0 : lower_lanes(lane - 32))) + b

v_sad_u8              u32 = u32 u32 u32     : byte_distances(a, b, c, false)
v_msad_u8             u32 = u32 u32 u32     : byte_distances(a, b, c, true)
v_sad_hi_u8           u32 = u32 u32 u32     : (byte_distances(a, b, 0, false) << 16) + c
v_sad_u16             u32 = u32 u32 u32     : distance(a & 0xffff, b & 0xffff) + distance(a >> 16, b >> 16) + c
v_sad_u32             u32 = u32 u32 u32     : distance(a, b) + c
v_lerp_u8             u32 = u32 u32 u32     : mean_bytes(a, b, c)
v_mad_u32_u16         u32 = u16 u16 u32     : a * b + c
v_mad_i32_i16         i32 = i16 i16 i32     : wrapping_add(a * b, c)
v_dot4c_i32_i8        i32 = u32 u32         : dot_bytes(a, b, d, true, true)
v_dot8c_i32_i4        i32 = u32 u32         : dot_nibbles(a, b, d, true, true)
v_prng_b32            u32 = u32             : a << 1 ^ (a >> 31 ? 197 : 0)
""")
