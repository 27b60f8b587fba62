// Functions that table rows use where one C++ operator is not enough. Written without branches where rows of
// lanes profit from it.
#pragma once
#include "formats.h"

template <class T> ALWAYS_INLINE T minimum(T a, T b) { return a < b ? a : b; }
template <class T> ALWAYS_INLINE T maximum(T a, T b) { return a > b ? a : b; }
template <class T> ALWAYS_INLINE T clamp_to(T x, T low, T high) { return x < low ? low : x > high ? high : x; }
template <class T> ALWAYS_INLINE T median(T a, T b, T c) { return maximum(minimum(a, b), minimum(maximum(a, b), c)); }

// --- bit fields -----------------------------------------------------------------------------------------------
ALWAYS_INLINE u32 field(u32 x, u32 first, u32 width) { return x >> (first & 31) & ((1u << (width & 31)) - 1); }
ALWAYS_INLINE i32 signed_field(u32 x, u32 first, u32 width) {
  // Bits above the top of x repeat its sign, as the arithmetic shift makes them.
  const u32 unused = 32 - (width & 31);
  const u32 shifted = static_cast<u32>(static_cast<i32>(x) >> (first & 31));
  return (width & 31) ? static_cast<i32>(shifted << (unused & 31)) >> (unused & 31) : 0;
}
ALWAYS_INLINE u64 field64(u64 x, u32 first, u32 width) {
  return x >> (first & 63) & (width >= 64 ? ~0ull : (1ull << width) - 1);
}
ALWAYS_INLINE i64 signed_field64(i64 x, u32 first, u32 width) {
  if (width == 0) return 0;
  const u64 shifted = static_cast<u64>(x >> (first & 63));
  return width >= 64 ? static_cast<i64>(shifted) : static_cast<i64>(shifted << (64 - width)) >> (64 - width);
}
// Scalar bit fields: width up to 127 in bits 16..22 of the control.
ALWAYS_INLINE u32 scalar_field(u32 x, u32 control) {
  const u32 width = control >> 16 & 127;
  return x >> (control & 31) & (width >= 32 ? ~0u : (1u << width) - 1);
}
ALWAYS_INLINE i32 scalar_signed_field(i32 x, u32 control) {
  const u32 width = control >> 16 & 127, shifted = static_cast<u32>(x >> (control & 31));
  if (width == 0) return 0;
  return width >= 32 ? static_cast<i32>(shifted) : static_cast<i32>(shifted << (32 - width)) >> (32 - width);
}
ALWAYS_INLINE u32 reverse_bits(u32 x) {
  x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
  x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
  x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
  return __builtin_bswap32(x);
}
ALWAYS_INLINE u64 reverse_bits64(u64 x) {
  return static_cast<u64>(reverse_bits(static_cast<u32>(x))) << 32 | reverse_bits(static_cast<u32>(x >> 32));
}
ALWAYS_INLINE u32 ones(u32 x) {
  x -= x >> 1 & 0x55555555;
  x = (x & 0x33333333) + (x >> 2 & 0x33333333);
  return ((x + (x >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;
}
ALWAYS_INLINE u32 ones64(u64 x) { return ones(static_cast<u32>(x)) + ones(static_cast<u32>(x >> 32)); }
ALWAYS_INLINE u32 leading_zeros(u32 x) { return x ? static_cast<u32>(__builtin_clz(x)) : ~0u; }
ALWAYS_INLINE u32 leading_zeros64(u64 x) { return x ? static_cast<u32>(__builtin_clzll(x)) : ~0u; }
ALWAYS_INLINE u32 lowest_one(u32 x) { return x ? static_cast<u32>(__builtin_ctz(x)) : ~0u; }
ALWAYS_INLINE u32 lowest_one64(u64 x) { return x ? static_cast<u32>(__builtin_ctzll(x)) : ~0u; }
// Position of the first bit from the top that differs from the sign.
ALWAYS_INLINE u32 sign_length(i32 x) { return leading_zeros(static_cast<u32>(x < 0 ? ~x : x)); }
ALWAYS_INLINE u32 sign_length64(i64 x) { return leading_zeros64(static_cast<u64>(x < 0 ? ~x : x)); }
ALWAYS_INLINE u32 any_of_fours(u32 x) {  // one bit for each group of four
  u32 result = 0;
  for (u32 i = 0; i < 8; ++i) result |= (x >> 4 * i & 15 ? 1u : 0u) << i;
  return result;
}
ALWAYS_INLINE u32 whole_fours(u32 x) {  // every group of four with a bit set becomes all ones
  u32 result = 0;
  for (u32 i = 0; i < 8; ++i) result |= (x >> 4 * i & 15 ? 15u : 0u) << 4 * i;
  return result;
}
ALWAYS_INLINE u64 any_of_fours64(u64 x) {
  return any_of_fours(static_cast<u32>(x)) | any_of_fours(static_cast<u32>(x >> 32)) << 8;
}
ALWAYS_INLINE u64 whole_fours64(u64 x) {
  return whole_fours(static_cast<u32>(x)) | static_cast<u64>(whole_fours(static_cast<u32>(x >> 32))) << 32;
}
ALWAYS_INLINE u64 double_bits(u32 x) {
  u64 result = 0;
  for (u32 i = 0; i < 32; ++i) result |= static_cast<u64>(x >> i & 1) * 3 << 2 * i;
  return result;
}
ALWAYS_INLINE u32 lower_lanes(u32 lane) { return lane >= 32 ? ~0u : (1u << lane) - 1; }

// Bytes of {a, b} (a is the upper dword) picked by the four selectors in `control`.
ALWAYS_INLINE u32 permute_bytes(u32 a, u32 b, u32 control) {
  const u64 bytes = static_cast<u64>(a) << 32 | b;
  u32 result = 0;
  for (u32 i = 0; i < 4; ++i) {
    const u32 pick = control >> 8 * i & 255;
    u32 byte;
    if (pick < 8) byte = bytes >> 8 * pick & 255;
    else if (pick < 12) byte = bytes >> (16 * (pick - 8) + 15) & 1 ? 255 : 0;
    else byte = pick == 12 ? 0 : 255;
    result |= byte << 8 * i;
  }
  return result;
}
// Any function of three bits: bit (4a + 2b + c) of the truth table.
ALWAYS_INLINE u32 truth_table(u32 a, u32 b, u32 c, u32 table) {
  u32 result = 0;
  for (u32 i = 0; i < 8; ++i)
    if (table >> i & 1) result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return result;
}

// --- integers -------------------------------------------------------------------------------------------------
ALWAYS_INLINE u32 low24(u32 x) { return x & 0xffffff; }
ALWAYS_INLINE i32 signed24(i32 x) { return static_cast<i32>(static_cast<u32>(x) << 8) >> 8; }
ALWAYS_INLINE u32 multiply_high(u32 a, u32 b) { return static_cast<u64>(a) * b >> 32; }
ALWAYS_INLINE i32 multiply_high(i32 a, i32 b) { return static_cast<i32>(static_cast<i64>(a) * b >> 32); }
ALWAYS_INLINE i32 wrapping_multiply(i32 a, i32 b) { return static_cast<i32>(static_cast<u32>(a) * static_cast<u32>(b)); }
ALWAYS_INLINE i32 wrapping_add(i32 a, i32 b) { return static_cast<i32>(static_cast<u32>(a) + static_cast<u32>(b)); }
ALWAYS_INLINE i32 wrapping_negate(i32 a) { return static_cast<i32>(0u - static_cast<u32>(a)); }
ALWAYS_INLINE i64 multiply_add(i32 a, i32 b, i64 c) {
  return static_cast<i64>(static_cast<u64>(static_cast<i64>(a) * b) + static_cast<u64>(c));
}
ALWAYS_INLINE i32 signed_distance(i32 a, i32 b) {
  return a > b ? wrapping_add(a, wrapping_negate(b)) : wrapping_add(b, wrapping_negate(a));
}
ALWAYS_INLINE u32 distance(u32 a, u32 b) { return a > b ? a - b : b - a; }
ALWAYS_INLINE u32 byte_of(u32 x, u32 index) { return x >> 8 * index & 255; }
ALWAYS_INLINE i32 signed_byte(u32 x, u32 index) { return static_cast<i8>(x >> 8 * index); }
ALWAYS_INLINE u32 half_of(u32 x, u32 index) { return x >> 16 * index & 0xffff; }
ALWAYS_INLINE i32 signed_half(u32 x, u32 index) { return static_cast<i16>(x >> 16 * index); }
ALWAYS_INLINE u32 pair(u32 low, u32 high) { return (low & 0xffff) | high << 16; }
ALWAYS_INLINE u32 byte_distances(u32 a, u32 b, u32 sum, bool masked) {
  for (u32 i = 0; i < 4; ++i)
    if (!masked || byte_of(b, i)) sum += distance(byte_of(a, i), byte_of(b, i));
  return sum;
}
ALWAYS_INLINE u32 mean_bytes(u32 a, u32 b, u32 round) {
  u32 result = 0;
  for (u32 i = 0; i < 4; ++i) result |= (byte_of(a, i) + byte_of(b, i) + (round >> 8 * i & 1)) >> 1 << 8 * i;
  return result;
}
ALWAYS_INLINE i32 dot_bytes(u32 a, u32 b, i32 sum, bool signed_a, bool signed_b) {
  for (u32 i = 0; i < 4; ++i) {
    const i32 x = signed_a ? signed_byte(a, i) : static_cast<i32>(byte_of(a, i));
    const i32 y = signed_b ? signed_byte(b, i) : static_cast<i32>(byte_of(b, i));
    sum = wrapping_add(sum, x * y);
  }
  return sum;
}
ALWAYS_INLINE i32 dot_nibbles(u32 a, u32 b, i32 sum, bool signed_a, bool signed_b) {
  for (u32 i = 0; i < 8; ++i) {
    const i32 x = signed_a ? static_cast<i32>(a << (28 - 4 * i)) >> 28 : static_cast<i32>(a >> 4 * i & 15);
    const i32 y = signed_b ? static_cast<i32>(b << (28 - 4 * i)) >> 28 : static_cast<i32>(b >> 4 * i & 15);
    sum = wrapping_add(sum, x * y);
  }
  return sum;
}

// --- floats ---------------------------------------------------------------------------------------------------
ALWAYS_INLINE f32 fused(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
ALWAYS_INLINE f64 fused(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
ALWAYS_INLINE bool is_signalling(f32 x) { return (bits_of(x) & 0x7fc00000) == 0x7f800000 && (bits_of(x) & 0x3fffff); }
ALWAYS_INLINE f32 quiet(f32 x) { return f32_from(bits_of(x) | 0x400000); }
// maxNum / minNum: a NaN loses to a number, -0 is below +0; a signalling NaN comes out quieted.
ALWAYS_INLINE f32 max_number(f32 a, f32 b) {
  f32 result = a > b ? a : b;
  result = a == b ? f32_from(bits_of(a) & bits_of(b)) : result;
  result = b != b ? a : result;
  result = a != a ? b : result;
  result = is_signalling(b) ? quiet(b) : result;
  return is_signalling(a) ? quiet(a) : result;
}
ALWAYS_INLINE f32 min_number(f32 a, f32 b) {
  f32 result = a < b ? a : b;
  result = a == b ? f32_from(bits_of(a) | bits_of(b)) : result;
  result = b != b ? a : result;
  result = a != a ? b : result;
  result = is_signalling(b) ? quiet(b) : result;
  return is_signalling(a) ? quiet(a) : result;
}
ALWAYS_INLINE f64 max_number(f64 a, f64 b) {
  if (a != a) return b;
  if (b != b) return a;
  return a == b ? f64_from(bits_of(a) & bits_of(b)) : a > b ? a : b;
}
ALWAYS_INLINE f64 min_number(f64 a, f64 b) {
  if (a != a) return b;
  if (b != b) return a;
  return a == b ? f64_from(bits_of(a) | bits_of(b)) : a < b ? a : b;
}
// IEEE 754-2019 maximum / minimum: a NaN wins.
ALWAYS_INLINE f32 max_or_nan(f32 a, f32 b) { return a != a ? quiet(a) : b != b ? quiet(b) : max_number(a, b); }
ALWAYS_INLINE f32 min_or_nan(f32 a, f32 b) { return a != a ? quiet(a) : b != b ? quiet(b) : min_number(a, b); }
ALWAYS_INLINE f32 median_number(f32 a, f32 b, f32 c) {
  if (a != a || b != b || c != c) return min_number(min_number(a, b), c);
  return max_number(min_number(a, b), min_number(max_number(a, b), c));
}
ALWAYS_INLINE bool is_denormal(f32 x) { return (bits_of(x) & 0x7f800000) == 0; }
ALWAYS_INLINE f32 flushed(f32 x) { return is_denormal(x) ? f32_from(bits_of(x) & 0x80000000) : x; }
// The transcendental unit neither reads nor writes fp32 denormals.
ALWAYS_INLINE f32 exp2_unit(f32 x) { return flushed(__builtin_exp2f(x)); }
ALWAYS_INLINE f32 log2_unit(f32 x) { return __builtin_log2f(flushed(x)); }
ALWAYS_INLINE f32 reciprocal(f32 x) { return flushed(1.0f / flushed(x)); }
ALWAYS_INLINE f32 reciprocal_root(f32 x) {
  return static_cast<f32>(1.0 / __builtin_sqrt(static_cast<f64>(flushed(x))));
}
ALWAYS_INLINE f32 root(f32 x) { return __builtin_sqrtf(flushed(x)); }
ALWAYS_INLINE f32 sine_of_turns(f32 x) {
  const f64 turns = x - __builtin_floor(static_cast<f64>(x));
  return static_cast<f32>(__builtin_sin(turns * 6.283185307179586476925));
}
ALWAYS_INLINE f32 cosine_of_turns(f32 x) {
  const f64 turns = x - __builtin_floor(static_cast<f64>(x));
  return static_cast<f32>(__builtin_cos(turns * 6.283185307179586476925));
}
ALWAYS_INLINE f32 fraction(f32 x) {  // below 1 even when x is just under an integer
  const f32 part = x - __builtin_floorf(x);
  return part >= 1.0f ? 0x1.fffffep-1f : part;
}
ALWAYS_INLINE f64 fraction(f64 x) {
  const f64 part = x - __builtin_floor(x);
  return part >= 1.0 ? 0x1.fffffffffffffp-1 : part;
}
ALWAYS_INLINE bool is_finite(f32 x) { return (bits_of(x) & 0x7f800000) != 0x7f800000; }
ALWAYS_INLINE bool is_finite(f64 x) { return (bits_of(x) >> 52 & 2047) != 2047; }
ALWAYS_INLINE f32 scaled(f32 x, i32 power) { return __builtin_ldexpf(x, power); }
ALWAYS_INLINE f64 scaled(f64 x, i32 power) { return __builtin_ldexp(x, power); }
ALWAYS_INLINE i32 exponent_of(f64 x) {  // x = mantissa * 2^result, 0.5 <= |mantissa| < 1
  int power = 0;
  if (!is_finite(x)) return 0;
  (void)__builtin_frexp(x, &power);
  return power;
}
ALWAYS_INLINE f64 mantissa_of(f64 x) {
  int power = 0;
  return is_finite(x) ? __builtin_frexp(x, &power) : x;
}
ALWAYS_INLINE u32 to_u32(f64 x) {
  if (!(x > 0)) return 0;
  return x >= 4294967295.0 ? ~0u : static_cast<u32>(x);
}
ALWAYS_INLINE i32 to_i32(f64 x) {
  if (x != x) return 0;
  if (x >= 2147483647.0) return 0x7fffffff;
  return x <= -2147483648.0 ? static_cast<i32>(0x80000000) : static_cast<i32>(x);
}
ALWAYS_INLINE i32 to_i16(f64 x) { return clamp_to(to_i32(x), -32768, 32767); }
ALWAYS_INLINE u32 to_u16(f64 x) { return minimum(to_u32(x), 65535u); }
ALWAYS_INLINE u32 to_u8(f32 x) { return minimum(to_u32(__builtin_rintf(x)), 255u); }
ALWAYS_INLINE u32 insert_byte(u32 word, u32 index, u32 byte) {
  const u32 shift = 8 * (index & 3);
  return (word & ~(255u << shift)) | byte << shift;
}
ALWAYS_INLINE i32 to_signed_unit(f32 x) { return to_i32(__builtin_rintf(clamp_to(x, -1.0f, 1.0f) * 32767.0f)); }
ALWAYS_INLINE u32 to_unsigned_unit(f32 x) { return to_u32(__builtin_rintf(clamp_to(x, 0.0f, 1.0f) * 65535.0f)); }

// Bits of v_cmp_class: signalling NaN, quiet NaN, -inf, -normal, -denormal, -0, +0, +denormal, +normal, +inf.
ALWAYS_INLINE bool in_class(u32 negative, u32 exponent, u32 top, u64 mantissa, bool quiet_bit, u32 classes) {
  if (exponent == top && mantissa) return classes >> (quiet_bit ? 1 : 0) & 1;
  u32 kind = exponent == top ? 2 : exponent ? 3 : mantissa ? 4 : 5;
  if (!negative) kind = 11 - kind;
  return classes >> kind & 1;
}
ALWAYS_INLINE bool class_f32(u32 x, u32 classes) {
  return in_class(x >> 31, x >> 23 & 255, 255, x & 0x7fffff, x >> 22 & 1, classes);
}
ALWAYS_INLINE bool class_f16(u32 x, u32 classes) {
  return in_class(x >> 15 & 1, x >> 10 & 31, 31, x & 0x3ff, x >> 9 & 1, classes);
}
ALWAYS_INLINE bool class_f64(u64 x, u32 classes) {
  return in_class(x >> 63, x >> 52 & 2047, 2047, x & 0xfffffffffffff, x >> 51 & 1, classes);
}

// a * b + c rounded once to fp16: the sum is rounded to odd in fp64 first.
ALWAYS_INLINE u32 fused_f16(f32 a, f32 b, f32 c) {
  const f64 product = static_cast<f64>(a) * b, sum = product + c;
  const f64 other = sum - product, lost = (product - (sum - other)) + (c - other);
  u64 bits = bits_of(sum);
  if (lost != 0 && lost == lost && !(bits & 1)) bits = (lost > 0) == (sum > 0) ? bits + 1 : bits - 1;
  return f64_to_f16(f64_from(bits));
}

// --- division steps -------------------------------------------------------------------------------------------
ALWAYS_INLINE i32 raw_exponent(f32 x) { return bits_of(x) >> 23 & 255; }
ALWAYS_INLINE i32 raw_exponent(f64 x) { return bits_of(x) >> 52 & 2047; }
template <class T> struct Scaled {
  T value;
  bool flag;
};
// v_div_scale: `a` is the operand to scale (numerator or denominator), b the denominator, c the numerator.
template <class T> ALWAYS_INLINE Scaled<T> division_scale(T a, T b, T c, i32 far, i32 up, i32 tiny) {
  const auto denormal = [](T x) { return x != 0 && raw_exponent(x) == 0; };
  if (b == 0 || c == 0) return {static_cast<T>(__builtin_nan("")), false};
  if (raw_exponent(c) - raw_exponent(b) >= far) return {a == b ? scaled(a, up) : a, true};
  if (denormal(b)) return {scaled(a, up), false};
  const bool small_reciprocal = denormal(1 / b);
  const bool small_quotient = denormal(c / b);
  if (small_reciprocal && small_quotient) return {a == b ? scaled(a, up) : a, true};
  if (small_reciprocal) return {scaled(a, -up), false};
  if (small_quotient) return {a == c ? scaled(a, up) : a, true};
  if (raw_exponent(c) <= tiny) return {scaled(a, up), false};
  return {a, false};
}
ALWAYS_INLINE Scaled<f32> division_scale(f32 a, f32 b, f32 c) { return division_scale(a, b, c, 96, 64, 23); }
ALWAYS_INLINE Scaled<f64> division_scale(f64 a, f64 b, f64 c) { return division_scale(a, b, c, 768, 128, 53); }

// v_div_fmas: takes back the scaling of v_div_scale. AMD's pseudocode multiplies by 2^32 (2^64), which cannot undo
// a scaling by 2^64 (2^128) in either direction; the direction follows from the size of the quotient c so far.
template <class T> ALWAYS_INLINE T division_fused(T a, T b, T c, bool rescale, i32 power) {
  const T quotient = fused(a, b, c);
  if (!rescale) return quotient;
  return scaled(quotient, (c < 0 ? -c : c) >= 1 ? power : -power);
}
// v_div_fixup: `a` is the quotient so far, b the denominator, c the numerator.
template <class T> ALWAYS_INLINE T division_fixup(T a, T b, T c) {
  const bool negative = __builtin_signbit(b) != __builtin_signbit(c);
  const T sign = negative ? -1 : 1;
  const T infinity = static_cast<T>(__builtin_inf()), size_b = b < 0 ? -b : b, size_c = c < 0 ? -c : c;
  if (c != c) return c + c;
  if (b != b) return b + b;
  if ((b == 0 && c == 0) || (size_b == infinity && size_c == infinity)) return -static_cast<T>(__builtin_nan(""));
  if (b == 0 || size_c == infinity) return sign * infinity;
  if (size_b == infinity || c == 0) return sign * 0;
  // Quotients that certainly leave the range: the steps before may have made a NaN of them.
  const i32 size_of_quotient = raw_exponent(c) - raw_exponent(b);
  if (size_of_quotient < (sizeof(T) == 8 ? -1075 : -150)) return sign * 0;
  if (size_of_quotient > (sizeof(T) == 8 ? 1024 : 128)) return sign * infinity;
  const T size = a < 0 ? -a : a;
  return negative ? -size : size;
}

ALWAYS_INLINE u32 add_pair_f16(u32 a, u32 b) {
  return pair(f32_to_f16(f16_to_f32(a & 0xffff) + f16_to_f32(b & 0xffff)),
              f32_to_f16(f16_to_f32(a >> 16) + f16_to_f32(b >> 16)));
}
ALWAYS_INLINE u32 add_pair_bf16(u32 a, u32 b) {
  return pair(f32_to_bf16(bf16_to_f32(a & 0xffff) + bf16_to_f32(b & 0xffff)),
              f32_to_bf16(bf16_to_f32(a >> 16) + bf16_to_f32(b >> 16)));
}

// --- pairs and small floats -----------------------------------------------------------------------------------
ALWAYS_INLINE u64 two_floats(f32 low, f32 high) { return bits_of(low) | static_cast<u64>(bits_of(high)) << 32; }
ALWAYS_INLINE u32 insert_half(u32 word, u32 index, u32 half) {
  return index & 1 ? (word & 0xffff) | half << 16 : (word & 0xffff0000) | (half & 0xffff);
}
ALWAYS_INLINE u32 saturated_bytes(u32 x) {
  return static_cast<u32>(clamp_to(signed_half(x, 0), 0, 255) | clamp_to(signed_half(x, 1), 0, 255) << 8);
}
ALWAYS_INLINE u32 shifted_bytes(i32 a, i32 b, u32 shift, i32 low, i32 high) {
  return (clamp_to(a >> (shift & 31), low, high) & 255) | (clamp_to(b >> (shift & 31), low, high) & 255) << 8;
}
ALWAYS_INLINE i32 saturating_add(i32 a, i32 b) {
  const i64 sum = static_cast<i64>(a) + b;
  return static_cast<i32>(clamp_to(sum, -2147483648ll, 2147483647ll));
}
ALWAYS_INLINE i32 saturating_subtract(i32 a, i32 b) {
  const i64 difference = static_cast<i64>(a) - b;
  return static_cast<i32>(clamp_to(difference, -2147483648ll, 2147483647ll));
}
ALWAYS_INLINE f32 dot_f16(u32 a, u32 b, f32 sum) {
  sum += f16_to_f32(a & 0xffff) * f16_to_f32(b & 0xffff);
  return sum + f16_to_f32(a >> 16) * f16_to_f32(b >> 16);
}
ALWAYS_INLINE f32 dot_bf16(u32 a, u32 b, f32 sum) {
  sum += bf16_to_f32(a & 0xffff) * bf16_to_f32(b & 0xffff);
  return sum + bf16_to_f32(a >> 16) * bf16_to_f32(b >> 16);
}
ALWAYS_INLINE i32 dot_i16(u32 a, u32 b, i32 sum) {
  sum = wrapping_add(sum, signed_half(a, 0) * signed_half(b, 0));
  return wrapping_add(sum, signed_half(a, 1) * signed_half(b, 1));
}
template <class A, class B> ALWAYS_INLINE f32 dot_small(u32 a, u32 b, f32 sum) {
  for (u32 i = 0; i < 4; ++i) sum += A::decode(byte_of(a, i)) * B::decode(byte_of(b, i));
  return sum;
}
// Adds random bits below fp16's last bit, then cuts.
ALWAYS_INLINE u32 f32_to_f16_stochastic(f32 x, u32 random) {
  return is_finite(x) ? f32_to_f16_toward_zero(f32_from(bits_of(x) + (random & 0x1fff))) : f32_to_f16(x);
}
// The power of two that the exponent of an fp32 operand stands for.
ALWAYS_INLINE f64 scale_of(u32 x) { return e8m0_to_f64(x >> 23 & 255); }
template <class T> ALWAYS_INLINE u64 decode_two(u32 codes, f64 scale) {
  return two_floats(static_cast<f32>(T::decode(codes & 255) * scale), static_cast<f32>(T::decode(codes >> 8) * scale));
}
ALWAYS_INLINE u32 narrow_pair(f32 low, f32 high, bool bf16) {
  return bf16 ? pair(f32_to_bf16(low), f32_to_bf16(high)) : pair(f32_to_f16(low), f32_to_f16(high));
}
template <class T> ALWAYS_INLINE u32 decode_halves(u32 codes, f64 scale, bool bf16) {
  return narrow_pair(static_cast<f32>(T::decode(codes & 255) * scale), static_cast<f32>(T::decode(codes >> 8) * scale), bf16);
}
template <class T> ALWAYS_INLINE u32 encode_two(f64 low, f64 high, f64 scale, bool clamps) {
  return T::encode(low * scale, clamps) | T::encode(high * scale, clamps) << 8;
}
ALWAYS_INLINE u64 decode_two_fp4(u32 codes, f64 scale) {
  return two_floats(static_cast<f32>(Fp4::decode(codes & 15) * scale), static_cast<f32>(Fp4::decode(codes >> 4) * scale));
}
ALWAYS_INLINE u32 decode_pair_fp4(u32 codes, f64 scale, bool bf16) {
  return narrow_pair(static_cast<f32>(Fp4::decode(codes & 15) * scale), static_cast<f32>(Fp4::decode(codes >> 4) * scale), bf16);
}
ALWAYS_INLINE u32 encode_two_fp4(f64 low, f64 high, f64 scale) {
  return Fp4::encode(low * scale, true) | Fp4::encode(high * scale, true) << 4;
}
