// Matrix instructions. One function per family; the shape and the element formats come with the op.
//
// The operands are unpacked to whole matrices first, multiplied, and packed again, so that each lane layout is
// written down once. Layouts: docs/emulation.md. The order of the additions inside the hardware is not known; here
// products are added in the order of k, except for scaled formats, which are added in fp64 and rounded once.
#pragma once
#include "arithmetic.h"
#include "values.h"

enum Format : u32 { kFp32, kFp16, kBf16, kInt8, kFp8, kBf8, kFp8Fnuz, kBf8Fnuz, kFp6, kBf6, kFp4, kFp64, kTf32,
                    kUint8, kInt4, kUint4, kInt32 };

struct MatrixShape {  // from Op.immediate
  u32 size, depth, blocks, format_a, format_b, result;
  explicit MatrixShape(i64 bits)
      : size(bits & 63), depth(bits >> 6 & 511), blocks(bits >> 15 & 31), format_a(bits >> 20 & 31),
        format_b(bits >> 25 & 31), result(bits >> 30 & 31) {}
};

ALWAYS_INLINE u32 bits_at(const u32* row, u32 lane, u32 first, u32 width) {
  const u32* at = row + lane + first / 32 * kRowLanes;
  u64 value = at[0];
  if (first % 32 + width > 32) value |= static_cast<u64>(at[kRowLanes]) << 32;
  return static_cast<u32>(value >> first % 32) & (width >= 32 ? ~0u : (1u << width) - 1);
}

// Element `e` of a lane's part of a matrix.
inline f64 matrix_element(const u32* row, u32 lane, u32 e, u32 format) {
  switch (format) {
    case kFp32: return f32_from(row[lane + e * kRowLanes]);
    case kTf32: return f32_from(row[lane + e * kRowLanes] & ~0x1fffu);
    case kFp64: return get_f64(row + 2 * e * kRowLanes, lane);
    case kFp16: return f16_to_f32(bits_at(row, lane, 16 * e, 16));
    case kBf16: return bf16_to_f32(bits_at(row, lane, 16 * e, 16));
    case kInt8: return static_cast<i8>(bits_at(row, lane, 8 * e, 8));
    case kUint8: return bits_at(row, lane, 8 * e, 8);
    case kInt4: return static_cast<i32>(bits_at(row, lane, 4 * e, 4) << 28) >> 28;
    case kUint4: return bits_at(row, lane, 4 * e, 4);
    case kFp8: return Fp8::decode(bits_at(row, lane, 8 * e, 8));
    case kBf8: return Bf8::decode(bits_at(row, lane, 8 * e, 8));
    case kFp8Fnuz: return Fp8Fnuz::decode(bits_at(row, lane, 8 * e, 8));
    case kBf8Fnuz: return Bf8Fnuz::decode(bits_at(row, lane, 8 * e, 8));
    case kFp6: return Fp6::decode(bits_at(row, lane, 6 * e, 6));
    case kBf6: return Bf6::decode(bits_at(row, lane, 6 * e, 6));
    default: return Fp4::decode(bits_at(row, lane, 4 * e, 4));
  }
}

constexpr u32 kMaxElements = 64 * 32;  // of a wave's part of A or B

// Multiplies size x depth by depth x size; `a` is [i][k], `b` is [k][j], both contiguous.
template <class T, class Accumulate>
ALWAYS_INLINE void multiply(const T* a, const T* b, T* sum, u32 size, u32 depth, Accumulate accumulate) {
  for (Lane i = 0; i < size; ++i)
    for (Lane k = 0; k < depth; ++k) {
      const T x = a[i * depth + k];
      const T* line = b + k * size;
      T* out = sum + i * size;
      INDEPENDENT_LANES for (Lane j = 0; j < size; ++j) out[j] = accumulate(x, line[j], out[j]);
    }
}

// --- MFMA -----------------------------------------------------------------------------------------------------
// Row of the result that register r of a lane holds, within its block.
ALWAYS_INLINE u32 mfma_row(u32 size, u32 r, u32 lane, bool wide) {
  if (size == 32) return r / 4 * 8 + lane / 32 * 4 + r % 4;
  if (size == 16) return wide ? r * 4 + lane / 16 : lane / 16 * 4 + r;
  return wide ? lane / 16 : r;
}
// The lane whose B a lane uses: blgp permutes groups of lanes.
ALWAYS_INLINE u32 mfma_b_lane(u32 lane, u32 pattern) {
  switch (pattern) {
    case 1: return lane % 32;
    case 2: return 32 + lane % 32;
    case 3: return (lane + 16) % 64;
    case 4: case 5: case 6: case 7: return (pattern - 4) * 16 + lane % 16;
    default: return lane;
  }
}

// a, b = factors, c = addend (x != 0: one row for all registers, a constant). immediate2 = cbsz | abid << 4 | blgp << 8.
template <class T, class Get, class Put, class Accumulate>
ALWAYS_INLINE void mfma(Wave& w, const Op& o, Get get, Put put, Accumulate accumulate) {
  const MatrixShape shape(o.immediate);
  const u32 size = shape.size, depth = shape.depth, blocks = shape.blocks;
  const u32 each = size * depth * blocks / 64, groups = 64 / size / blocks;
  const u32 share = o.immediate2 & 7, from = o.immediate2 >> 4 & 15, pattern = o.immediate2 >> 8 & 7;
  const u32 *a_row = dwords(w, o.a), *b_row = dwords(w, o.b), *c_row = dwords(w, o.c);
  const bool wide = shape.result == kFp64;
  static thread_local T a[kMaxElements], b[kMaxElements], sum[64 * 32];
  for (u32 lane = 0; lane < 64; ++lane) {
    // f64 4x4 puts the four values of k in the four quarters of the wave, the blocks inside a quarter.
    const u32 group = lane / size, block = wide && size == 4 ? group % blocks : group / groups;
    const u32 k = wide && size == 4 ? lane / 16 : group % groups * each;
    const u32 b_lane = mfma_b_lane(lane, wide ? 0 : pattern);
    for (u32 e = 0; e < each; ++e) {
      a[(block * size + lane % size) * depth + k + e] = static_cast<T>(matrix_element(a_row, lane, e, shape.format_a));
      b[(block * depth + k + e) * size + lane % size] = static_cast<T>(matrix_element(b_row, b_lane, e, shape.format_b));
    }
  }
  const u32 registers = size * size * blocks / 64, per_block = size == 4 ? registers : registers / blocks;
  const auto place = [&](u32 r, u32 lane) {
    const u32 block = size == 4 ? (wide ? lane / 4 % 4 : lane / 4) : r / per_block;
    return (block * size + mfma_row(size, r % per_block, lane, wide)) * size + lane % size;
  };
  for (u32 r = 0; r < registers; ++r)
    for (u32 lane = 0; lane < 64; ++lane) sum[place(r, lane)] = get(c_row, o.x ? 0 : r, lane);
  for (u32 block = 0; block < blocks; ++block) {
    const u32 a_block = share ? (block & ~((1u << share) - 1)) | from : block;
    multiply(a + a_block * size * depth, b + block * size * depth, sum + block * size * size, size, depth, accumulate);
  }
  u32* d_row = dwords(w, o.d);
  for (u32 r = 0; r < registers; ++r)
    for (u32 lane = 0; lane < 64; ++lane) put(d_row, r, lane, sum[place(r, lane)]);
}

inline void mfma_f32(Wave& w, const Op& o) {
  mfma<f32>(
      w, o, [](const u32* row, u32 r, u32 lane) { return f32_from(row[lane + r * kRowLanes]); },
      [](u32* row, u32 r, u32 lane, f32 x) { row[lane + r * kRowLanes] = bits_of(x); },
      [](f32 x, f32 y, f32 sum) { return fused(x, y, sum); });
}
inline void mfma_f64(Wave& w, const Op& o) {
  mfma<f64>(
      w, o, [](const u32* row, u32 r, u32 lane) { return get_f64(row + 2 * r * kRowLanes, lane); },
      [](u32* row, u32 r, u32 lane, f64 x) { put_f64(row + 2 * r * kRowLanes, lane, ~0u, x); },
      [](f64 x, f64 y, f64 sum) { return fused(x, y, sum); });
}
inline void mfma_i32(Wave& w, const Op& o) {
  mfma<i32>(
      w, o, [](const u32* row, u32 r, u32 lane) { return static_cast<i32>(row[lane + r * kRowLanes]); },
      [](u32* row, u32 r, u32 lane, i32 x) { row[lane + r * kRowLanes] = static_cast<u32>(x); },
      [](i32 x, i32 y, i32 sum) { return wrapping_add(sum, x * y); });
}

// MX-scaled: every lane holds 32 consecutive values of k and one e8m0 scale for them. e, y = rows with the scales of
// A and B (immediate2: byte of A's scale in bits 0..1, of B's in bits 4..5), or none when immediate2 bit 8 is clear.
inline void mfma_scaled(Wave& w, const Op& o) {
  const MatrixShape shape(o.immediate);
  const u32 size = shape.size, depth = shape.depth, groups = 64 / size;
  const u32 *a_row = dwords(w, o.a), *b_row = dwords(w, o.b), *c_row = dwords(w, o.c);
  const u32 *a_scale = dwords(w, o.e), *b_scale = dwords(w, o.y);
  const bool scaled = o.immediate2 >> 8 & 1;
  static thread_local f64 a[kMaxElements], b[kMaxElements], sum[32 * 32];
  for (u32 lane = 0; lane < 64; ++lane) {
    const u32 k = lane / size * (depth / groups);
    const f64 scale_a = scaled ? e8m0_to_f64(byte_of(a_scale[lane], o.immediate2 & 3)) : 1.0;
    const f64 scale_b = scaled ? e8m0_to_f64(byte_of(b_scale[lane], o.immediate2 >> 4 & 3)) : 1.0;
    for (u32 e = 0; e < depth / groups; ++e) {
      a[lane % size * depth + k + e] = matrix_element(a_row, lane, e, shape.format_a) * scale_a;
      b[(k + e) * size + lane % size] = matrix_element(b_row, lane, e, shape.format_b) * scale_b;
    }
  }
  u32* d_row = dwords(w, o.d);
  for (u32 r = 0; r < size * size / 64; ++r)
    for (u32 lane = 0; lane < 64; ++lane)
      sum[mfma_row(size, r, lane, false) * size + lane % size] = f32_from(c_row[lane + (o.x ? 0 : r) * kRowLanes]);
  multiply(a, b, sum, size, depth, [](f64 x, f64 y, f64 total) { return x * y + total; });
  for (u32 r = 0; r < size * size / 64; ++r)
    for (u32 lane = 0; lane < 64; ++lane)
      d_row[lane + r * kRowLanes] = bits_of(static_cast<f32>(sum[mfma_row(size, r, lane, false) * size + lane % size]));
}

// --- WMMA (wave32, 16 x 16) -----------------------------------------------------------------------------------
// immediate2: bit 0 = gfx12's layout, bit 1 = 16-bit results in the high halves (gfx11), bits 4..6 = signs of A, B, C flip
// in low elements, bits 8..10 in high elements.
constexpr i64 kNewLayout = 1, kHighHalf = 2;

ALWAYS_INLINE f32 wmma_sign(const Op& o, u32 operand, u32 e) {
  return o.immediate2 >> ((e & 1 ? 8 : 4) + operand) & 1 ? -1.0f : 1.0f;
}

template <class T, class Accumulate> ALWAYS_INLINE void wmma(Wave& w, const Op& o, Accumulate accumulate) {
  const MatrixShape shape(o.immediate);
  const u32 depth = shape.depth, format = shape.result;
  const bool layout12 = o.immediate2 & kNewLayout, integers = format == kInt32;
  const u32 each = layout12 ? depth / 2 : depth;
  const u32 *a_row = dwords(w, o.a), *b_row = dwords(w, o.b), *c_row = dwords(w, o.c);
  T a[16 * 32], b[16 * 32], sum[16 * 16];
  for (u32 lane = 0; lane < 32; ++lane) {
    const u32 k = layout12 ? lane / 16 * each : 0;
    for (u32 e = 0; e < each; ++e) {
      const f64 x = matrix_element(a_row, lane, e, shape.format_a), y = matrix_element(b_row, lane, e, shape.format_b);
      a[lane % 16 * depth + k + e] = static_cast<T>(integers ? x : x * wmma_sign(o, 0, e));
      b[(k + e) * 16 + lane % 16] = static_cast<T>(integers ? y : y * wmma_sign(o, 1, e));
    }
  }
  const bool narrow = format == kFp16 || format == kBf16;
  const auto place = [&](u32 r, u32 lane) { return (layout12 ? lane / 16 * 8 + r : 2 * r + lane / 16) * 16 + lane % 16; };
  // 16-bit results: gfx12 packs two rows in a register, gfx11 uses one half of it.
  const auto bit_of = [&](u32 r) { return layout12 ? 16 * r : 32 * r + (o.immediate2 & kHighHalf ? 16 : 0); };
  for (u32 r = 0; r < 8; ++r)
    for (u32 lane = 0; lane < 32; ++lane) {
      T x;
      if (!narrow) {
        const u32 raw = c_row[lane + (o.x ? 0 : r) * kRowLanes];
        x = integers ? static_cast<T>(static_cast<i32>(raw)) : static_cast<T>(f32_from(raw) * wmma_sign(o, 2, 0));
      } else {
        const u32 raw = bits_at(c_row, lane, o.x ? 0 : bit_of(r), 16);
        x = static_cast<T>(format == kFp16 ? f16_to_f32(raw) : bf16_to_f32(raw)) * static_cast<T>(wmma_sign(o, 2, 0));
      }
      sum[place(r, lane)] = x;
    }
  multiply(a, b, sum, 16, depth, accumulate);
  u32* d_row = dwords(w, o.d);
  for (u32 r = 0; r < 8; ++r)
    for (u32 lane = 0; lane < 32; ++lane) {
      const T x = sum[place(r, lane)];
      if (!narrow) {
        d_row[lane + r * kRowLanes] = integers ? static_cast<u32>(static_cast<i32>(x)) : bits_of(static_cast<f32>(x));
        continue;
      }
      const u32 half = format == kFp16 ? f32_to_f16(static_cast<f32>(x)) : f32_to_bf16(static_cast<f32>(x));
      u32& target = d_row[lane + bit_of(r) / 32 * kRowLanes];
      target = insert_half(target, bit_of(r) / 16 & 1, half);
    }
}
inline void wmma_float(Wave& w, const Op& o) {
  wmma<f32>(w, o, [](f32 x, f32 y, f32 sum) { return fused(x, y, sum); });
}
inline void wmma_integer(Wave& w, const Op& o) {
  wmma<i32>(w, o, [](i32 x, i32 y, i32 sum) { return wrapping_add(sum, x * y); });
}
