// Integer and float names, bit casts and compiler differences. No C or C++ library is included on purpose:
// g++, clang++ and ziglang (-nostdlib++ -nostdinc++) must all accept this text.
#pragma once

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i8 = signed char;
using i16 = short;
using i32 = int;
using i64 = long long;
using f32 = float;
using f64 = double;
using Lane = unsigned long;  // pointer-sized, so that compilers see that indices do not wrap

#define ALWAYS_INLINE inline __attribute__((always_inline))

// The lanes of a row are independent: a register row is either the same as another one or disjoint from it.
#if defined(__clang__)
#define INDEPENDENT_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT_LANES _Pragma("GCC ivdep")
#endif

ALWAYS_INLINE u32 bits_of(f32 x) { return __builtin_bit_cast(u32, x); }
ALWAYS_INLINE u64 bits_of(f64 x) { return __builtin_bit_cast(u64, x); }
ALWAYS_INLINE f32 f32_from(u32 x) { return __builtin_bit_cast(f32, x); }
ALWAYS_INLINE f64 f64_from(u64 x) { return __builtin_bit_cast(f64, x); }

template <class T> ALWAYS_INLINE T load_unaligned(const void* p) {
  T value;
  __builtin_memcpy(&value, p, sizeof value);
  return value;
}
template <class T> ALWAYS_INLINE void store_unaligned(void* p, T value) { __builtin_memcpy(p, &value, sizeof value); }
