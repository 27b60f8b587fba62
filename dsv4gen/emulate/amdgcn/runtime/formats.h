// Small float formats: fp16, bf16, fp8 in both dialects (OCP and FNUZ), fp6, fp4, e8m0. All by integers, because
// g++ 12 has no _Float16 in C++. Conversions to a smaller format round to nearest even unless named otherwise.
#pragma once
#include "base.h"

ALWAYS_INLINE f32 f16_to_f32(u32 half) {
  const u32 magnitude = (half & 0x7fff) << 13;
  u32 result = bits_of(f32_from(magnitude) * 0x1p112f);  // moves the exponent's bias; exact for denormals too
  result |= magnitude >= 0x0f800000 ? 0x7f800000u : 0u;  // infinity and NaN
  return f32_from(result | (half & 0x8000) << 16);
}

ALWAYS_INLINE u32 f32_to_f16(f32 value) {
  const u32 bits = bits_of(value), magnitude = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
  const u32 normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
  const u32 small = bits_of(f32_from(magnitude) + 0.5f) - 0x3f000000;  // the adder rounds at 2^-24
  u32 result = magnitude < 0x38800000 ? small : normal;
  result = magnitude >= 0x47800000 ? 0x7c00u : result;
  result = magnitude > 0x7f800000 ? 0x7e00u | (magnitude >> 13 & 0x3ff) : result;
  return sign | result;
}

// Rounds toward zero; an overflow gives the largest finite value.
ALWAYS_INLINE u32 f32_to_f16_toward_zero(f32 value) {
  const u32 bits = bits_of(value), magnitude = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
  if (magnitude > 0x7f800000) return sign | 0x7e00 | (magnitude >> 13 & 0x3ff);
  if (magnitude == 0x7f800000) return sign | 0x7c00;
  if (magnitude >= 0x47800000) return sign | 0x7bff;
  if (magnitude >= 0x38800000) return sign | (magnitude - 0x38000000) >> 13;
  if (magnitude < 0x33800000) return sign;
  const u32 shift = 126 - (magnitude >> 23);
  return sign | ((magnitude & 0x7fffff) | 0x800000) >> shift;
}

ALWAYS_INLINE u32 f64_to_f16(f64 value) {
  // Rounds to odd in fp32 first, so that the second rounding cannot double-round.
  f32 near = static_cast<f32>(value);
  u32 bits = bits_of(near);
  const f64 back = near;
  if (back != value && back == back) {
    const bool away = __builtin_fabs(back) > __builtin_fabs(value);
    if (away) --bits;
    bits |= 1;
  }
  return f32_to_f16(f32_from(bits));
}

ALWAYS_INLINE f32 bf16_to_f32(u32 value) { return f32_from(value << 16); }

ALWAYS_INLINE u32 f32_to_bf16(f32 value) {
  const u32 bits = bits_of(value);
  const u32 rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return (bits & 0x7fffffff) > 0x7f800000 ? (bits >> 16 | 0x40) : rounded;
}

// A float format of up to 8 bits: sign, `kExponent` and `kMantissa` bits.
enum class Special { ocp_e4m3, ieee, fnuz, finite };  // which codes are NaN or infinity

template <int kExponent, int kMantissa, int kBias, Special kSpecial> struct Small {
  static constexpr u32 kSign = 1u << (kExponent + kMantissa);
  static constexpr u32 kMagnitude = kSign - 1;
  static constexpr u32 kInfinity = ((1u << kExponent) - 1) << kMantissa;

  static f32 decode(u32 code) {
    const u32 magnitude = code & kMagnitude;
    const f32 sign = code & kSign ? -1.0f : 1.0f;
    if (kSpecial == Special::fnuz && (code & (kSign | kMagnitude)) == kSign) return __builtin_nanf("");
    if (kSpecial == Special::ocp_e4m3 && magnitude == kMagnitude) return __builtin_nanf("");
    if (kSpecial == Special::ieee && magnitude > kInfinity) return __builtin_nanf("");
    if (kSpecial == Special::ieee && magnitude == kInfinity) return sign * __builtin_inff();
    const u32 exponent = magnitude >> kMantissa, mantissa = magnitude & ((1u << kMantissa) - 1);
    const f32 fraction = static_cast<f32>(mantissa) / (1 << kMantissa);
    const f32 size = exponent ? (1.0f + fraction) * power_of_two(static_cast<int>(exponent) - kBias)
                              : fraction * power_of_two(1 - kBias);
    return sign * size;
  }

  static constexpr u32 largest() {
    if (kSpecial == Special::ocp_e4m3) return kMagnitude - 1;
    if (kSpecial == Special::ieee) return kInfinity - 1;
    return kMagnitude;
  }

  // Rounds to nearest even, or adds `random` below the last kept bit first (stochastic rounding).
  static u32 encode(f64 value, bool saturate, const u32* random = nullptr) {
    const u64 bits = bits_of(value);
    const u32 sign = bits >> 63 ? kSign : 0;
    if (value != value) return not_a_number(sign);
    const f64 size = __builtin_fabs(value);
    if (size > 1e300) return overflow(sign, saturate, true);
    // Round at the format's last bit of this binade.
    int exponent = static_cast<int>((bits >> 52) & 2047) - 1023;
    const int smallest = 1 - kBias;
    const int last = (exponent < smallest ? smallest : exponent) - kMantissa;
    const f64 scaled = size * power_of_two_f64(-last);
    f64 whole;
    if (random) {
      whole = __builtin_floor(scaled + *random * 0x1p-32);
    } else {
      whole = __builtin_floor(scaled);
      const f64 rest = scaled - whole;
      if (rest > 0.5 || (rest == 0.5 && (static_cast<u64>(whole) & 1))) whole += 1.0;
    }
    const u32 units = static_cast<u32>(whole);  // below 2^(kMantissa+1), or equal to it after a carry
    u32 code;
    if (exponent < smallest) {
      code = units;
    } else {
      code = (static_cast<u32>(exponent - smallest) << kMantissa) + units;
    }
    if (code > largest()) return overflow(sign, saturate, false);
    if (kSpecial == Special::fnuz && code == 0) return 0;
    return sign | code;
  }

 private:
  static f32 power_of_two(int n) { return f32_from(static_cast<u32>(n + 127) << 23); }
  static f64 power_of_two_f64(int n) { return f64_from(static_cast<u64>(n + 1023) << 52); }
  static u32 not_a_number(u32 sign) {
    if (kSpecial == Special::fnuz) return kSign;
    if (kSpecial == Special::finite) return sign | kMagnitude;
    return sign | kMagnitude;
  }
  static u32 overflow(u32 sign, bool saturate, bool infinite) {
    (void)infinite;
    if (saturate || kSpecial == Special::finite) return sign | largest();
    if (kSpecial == Special::fnuz) return kSign;
    if (kSpecial == Special::ocp_e4m3) return sign | kMagnitude;
    return sign | kInfinity;
  }
};

using Fp8 = Small<4, 3, 7, Special::ocp_e4m3>;
using Bf8 = Small<5, 2, 15, Special::ieee>;
using Fp8Fnuz = Small<4, 3, 8, Special::fnuz>;
using Bf8Fnuz = Small<5, 2, 16, Special::fnuz>;
using Fp6 = Small<2, 3, 1, Special::finite>;
using Bf6 = Small<3, 2, 3, Special::finite>;
using Fp4 = Small<2, 1, 1, Special::finite>;

// e8m0 scale: 2^(code - 127), 255 is NaN.
ALWAYS_INLINE f64 e8m0_to_f64(u32 code) {
  if (code == 255) return __builtin_nan("");
  return f64_from(static_cast<u64>(code + 1023 - 127) << 52);
}
