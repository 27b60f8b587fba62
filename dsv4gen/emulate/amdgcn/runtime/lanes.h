// Operations between lanes, between rows and scalars, and the small steps that operand modifiers become.
#pragma once
#include "arithmetic.h"
#include "values.h"

// --- rows from scalars, and back ------------------------------------------------------------------------------
template <int kRows> void broadcast(Wave& w, const Op& o) {  // d = rows, a = scalars
  const u32* source = dwords(w, o.a);
  u32* row = dwords(w, o.d);
  for (u32 r = 0; r < kRows; ++r) {
    const u32 value = source[r];
    INDEPENDENT_LANES for (Lane lane = 0; lane < kRowLanes; ++lane) row[r * kRowLanes + lane] = value;
  }
}
inline void read_first_lane(Wave& w, const Op& o) {
  const u64 exec = exec_of(w);
  *dwords(w, o.d) = dwords(w, o.a)[exec ? __builtin_ctzll(exec) : 0];
}
inline void read_lane(Wave& w, const Op& o) { *dwords(w, o.d) = dwords(w, o.a)[*dwords(w, o.b) % w.lanes]; }
inline void write_lane(Wave& w, const Op& o) { dwords(w, o.d)[*dwords(w, o.b) % w.lanes] = *dwords(w, o.a); }

// --- EXEC -----------------------------------------------------------------------------------------------------
inline void exec_written(Wave& w, const Op&) { refresh_mask(w); }
inline void exec_from_mask(Wave& w, const Op& o) {
  write_mask(w, &w.s[kExec], read_mask(w, dwords(w, o.a)));
  refresh_mask(w);
}
inline void exec_restore(Wave& w, const Op&) {
  write_u64(&w.s[kExec], w.saved_exec);
  refresh_mask(w);
}

// --- input and output modifiers -------------------------------------------------------------------------------
constexpr u32 kAbsolute = 1, kNegate = 2;
template <u32 kSign, int kHalves> ALWAYS_INLINE void change_signs(Wave& w, const Op& o) {
  const u32* source = dwords(w, o.a);
  u32* row = dwords(w, o.d);
  const u32 keep = o.immediate & kAbsolute ? ~kSign : ~0u, flip = o.immediate & kNegate ? kSign : 0;
  for (u32 lane = 0; lane < kRowLanes; ++lane) {
    if (kHalves == 2) row[lane] = source[lane];
    const u32 at = lane + (kHalves - 1) * kRowLanes;
    row[at] = (source[at] & keep) ^ flip;
  }
}
inline void modify_f32(Wave& w, const Op& o) { change_signs<0x80000000u, 1>(w, o); }
inline void modify_f16(Wave& w, const Op& o) { change_signs<0x8000u, 1>(w, o); }
inline void modify_f64(Wave& w, const Op& o) { change_signs<0x80000000u, 2>(w, o); }
inline void high_half(Wave& w, const Op& o) {
  const u32* source = dwords(w, o.a);
  u32* row = dwords(w, o.d);
  for (u32 lane = 0; lane < kRowLanes; ++lane) row[lane] = source[lane] >> 16;
}
// SDWA's source selection: immediate = first bit | width << 8, immediate2 = sign extension.
inline void select_field(Wave& w, const Op& o) {
  const u32* source = dwords(w, o.a);
  u32* row = dwords(w, o.d);
  const u32 first = o.immediate & 31, unused = 32 - (o.immediate >> 8);
  for (u32 lane = 0; lane < kRowLanes; ++lane) {
    const u32 up = source[lane] >> first << unused;
    row[lane] = o.immediate2 ? static_cast<u32>(static_cast<i32>(up) >> unused) : up >> unused;
  }
}
// Puts the low bits of a into a field of d: immediate as above; immediate2: 0 = zero the rest, 1 = sign, 2 = keep.
inline void insert_field(Wave& w, const Op& o) {
  const u32* source = dwords(w, o.a);
  u32* row = dwords(w, o.d);
  const u32 first = o.immediate & 31, width = o.immediate >> 8;
  const u32 field = (width >= 32 ? ~0u : (1u << width) - 1) << first;
  for (u32 lane = 0; lane < w.lanes; ++lane) {
    const u32 moved = source[lane] << first & field;
    u32 rest = 0;
    if (o.immediate2 == 2) rest = row[lane] & ~field;
    if (o.immediate2 == 1 && source[lane] >> (width - 1) & 1 && first + width < 32) rest = ~0u << (first + width);
    put_u32(row, lane, w.mask[lane], moved | rest);
  }
}
inline void copy_row(Wave& w, const Op& o) {
  const u32* source = dwords(w, o.a);
  u32* row = dwords(w, o.d);
  for (Lane base = 0; base < w.lanes; base += 32)
    INDEPENDENT_LANES for (Lane lane = base; lane < base + 32; ++lane) put_u32(row, lane, w.mask[lane], source[lane]);
}
// Clamp to 0..1 (a NaN becomes 0) and output scaling by immediate (1 = no scaling).
ALWAYS_INLINE f32 unit_range(f32 x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
ALWAYS_INLINE f32 output_scale(const Op& o) { return o.immediate == 3 ? 0.5f : static_cast<f32>(1 << o.immediate); }
inline void finish_f32(Wave& w, const Op& o) {
  const u32* source = dwords(w, o.a);
  u32* row = dwords(w, o.d);
  for (u32 lane = 0; lane < w.lanes; ++lane) {
    const f32 x = f32_from(source[lane]) * output_scale(o);
    put_f32(row, lane, w.mask[lane], o.immediate2 ? unit_range(x) : x);
  }
}
inline void finish_f16(Wave& w, const Op& o) {
  const u32* source = dwords(w, o.a);
  u32* row = dwords(w, o.d);
  for (u32 lane = 0; lane < w.lanes; ++lane) {
    const f32 x = get_f16(source, lane) * output_scale(o);
    put_f16(row, lane, w.mask[lane], o.immediate2 ? unit_range(x) : x);
  }
}
inline void finish_f64(Wave& w, const Op& o) {
  const u32* source = dwords(w, o.a);
  u32* row = dwords(w, o.d);
  for (u32 lane = 0; lane < w.lanes; ++lane) {
    const f64 x = get_f64(source, lane) * output_scale(o);
    put_f64(row, lane, w.mask[lane], o.immediate2 ? (x > 0 ? (x < 1 ? x : 1) : 0) : x);
  }
}

// --- lanes ----------------------------------------------------------------------------------------------------
enum DppKind : u32 { kQuad, kShiftLeft, kShiftRight, kRotateRight, kMirror, kHalfMirror, kBroadcast15, kBroadcast31,
                     kNewBroadcast, kXor, kWaveShiftRight, kWaveShiftLeft, kWaveRotateRight, kWaveRotateLeft, kEight };

// The lane that `lane` reads, or -1 when it is outside the row (or the wave).
ALWAYS_INLINE i32 dpp_lane(u32 kind, u64 control, i32 lane, i32 lanes) {
  const i32 row = lane & ~15, i = lane & 15, n = static_cast<i32>(control & 15);
  switch (kind) {
    case kQuad: return (lane & ~3) | (control >> 2 * (lane & 3) & 3);
    case kEight: return (lane & ~7) | (control >> 3 * (lane & 7) & 7);
    case kShiftLeft: return i + n < 16 ? lane + n : -1;
    case kShiftRight: return i >= n ? lane - n : -1;
    case kRotateRight: return row | ((i - n) & 15);
    case kMirror: return row | (15 - i);
    case kHalfMirror: return (lane & ~7) | (7 - (lane & 7));
    case kBroadcast15: return lane >= 16 ? row - 1 : -1;
    case kBroadcast31: return lane >= 32 ? 31 : -1;
    case kNewBroadcast: return row | n;
    case kXor: return row | (i ^ n);
    case kWaveShiftRight: return lane - 1;
    case kWaveShiftLeft: return lane + 1 < lanes ? lane + 1 : -1;
    case kWaveRotateRight: return (lane + lanes - 1) % lanes;
    default: return (lane + 1) % lanes;
  }
}
// d = moved copy of a; EXEC loses the lanes that may not write, until exec_restore. immediate = control |
// row mask << 32 | bank mask << 36 | bound_ctrl << 40 | fetch-inactive << 41; immediate2 = kind.
inline void dpp_begin(Wave& w, const Op& o) {
  const u32* source = dwords(w, o.a);
  u32* row = dwords(w, o.d);
  const u64 control = static_cast<u64>(o.immediate), exec = exec_of(w);
  const bool zero = control >> 40 & 1, inactive = control >> 41 & 1;
  u64 writes = 0;
  for (u32 lane = 0; lane < w.lanes; ++lane) {
    const i32 from = dpp_lane(static_cast<u32>(o.immediate2), control & 0xffffffff, static_cast<i32>(lane), static_cast<i32>(w.lanes));
    const bool valid = from >= 0 && (inactive || (exec >> from & 1));
    row[lane] = valid ? source[from] : 0;
    const bool enabled = control >> (32 + lane / 16) & control >> (36 + lane % 16 / 4) & 1;
    if (enabled && (valid || zero)) writes |= 1ull << lane;
  }
  w.saved_exec = exec;
  write_u64(&w.s[kExec], exec & writes);
  refresh_mask(w);
}
// d = moved copy of the rows of a, for 64-bit sources: the second row, after dpp_begin changed EXEC.
inline void dpp_move(Wave& w, const Op& o) {
  const u32* source = dwords(w, o.a);
  u32* row = dwords(w, o.d);
  for (u32 lane = 0; lane < w.lanes; ++lane) {
    const i32 from = dpp_lane(static_cast<u32>(o.immediate2), static_cast<u32>(o.immediate), static_cast<i32>(lane), static_cast<i32>(w.lanes));
    row[lane] = from >= 0 && (w.saved_exec >> from & 1) ? source[from] : 0;
  }
}

// Copies a row so that a result may overwrite it.
struct Copy {
  u32 values[kRowLanes];
  explicit Copy(const u32* row) { __builtin_memcpy(values, row, sizeof values); }
  u32 operator[](u32 lane) const { return values[lane]; }
};

// ds_bpermute: a = byte addresses of lanes, b = data; inactive source lanes read as 0 unless immediate2 is set.
inline void lane_gather(Wave& w, const Op& o) {
  const u32* addresses = dwords(w, o.a);
  const Copy data(dwords(w, o.b));
  u32* row = dwords(w, o.d);
  for (u32 lane = 0; lane < w.lanes; ++lane) {
    const u32 from = (addresses[lane] + static_cast<u32>(o.immediate)) >> 2 & (w.lanes - 1);
    const u32 value = w.mask[from] || o.immediate2 ? data[from] : 0;
    put_u32(row, lane, w.mask[lane], value);
  }
}
inline void lane_scatter(Wave& w, const Op& o) {
  const u32* addresses = dwords(w, o.a);
  const u32* data = dwords(w, o.b);
  u32* row = dwords(w, o.d);
  u32 moved[kRowLanes] = {};
  for (u32 lane = 0; lane < w.lanes; ++lane)
    if (w.mask[lane]) moved[(addresses[lane] + static_cast<u32>(o.immediate)) >> 2 & (w.lanes - 1)] = data[lane];
  for (u32 lane = 0; lane < w.lanes; ++lane) put_u32(row, lane, w.mask[lane], moved[lane]);
}
// ds_swizzle: immediate bit 15 set = quad permutation (or rotation with bit 14), else and/or/xor masks of 5 bits.
inline void lane_swizzle(Wave& w, const Op& o) {
  const Copy data(dwords(w, o.a));
  u32* row = dwords(w, o.d);
  const u32 control = static_cast<u32>(o.immediate);
  for (u32 lane = 0; lane < w.lanes; ++lane) {
    u32 from;
    if ((control & 0xc000) == 0xc000) {  // rotation: direction in bit 10, distance in 5..9, fixed bits in 0..4
      const u32 fixed = control & 31, distance = control >> 5 & 31;
      const u32 turned = control >> 10 & 1 ? lane - distance : lane + distance;
      from = (lane & ~31u) | (lane & fixed) | (turned & 31 & ~fixed);
    } else if (control & 0x8000) {
      from = (lane & ~3u) | (control >> 2 * (lane & 3) & 3);
    } else {
      const u32 and_mask = control & 31, or_mask = control >> 5 & 31, xor_mask = control >> 10 & 31;
      from = (lane & ~31u) | (((lane & 31 & and_mask) | or_mask) ^ xor_mask);
    }
    put_u32(row, lane, w.mask[lane], from < w.lanes && w.mask[from] ? data[from] : 0);
  }
}
// v_permlane16 / v_permlanex16: b, c = the selectors (scalars); immediate = 1 reads the neighbour row;
// immediate2 bit 0 = fetch inactive lanes, bit 1 = inactive lanes read as 0 (else the result keeps its old value).
inline void lane_permute_row(Wave& w, const Op& o) {
  const Copy data(dwords(w, o.a));
  u32* row = dwords(w, o.d);
  const u64 selectors = *dwords(w, o.b) | static_cast<u64>(*dwords(w, o.c)) << 32;
  for (u32 lane = 0; lane < w.lanes; ++lane) {
    const u32 from = ((lane & ~15u) ^ (o.immediate ? 16 : 0)) | (selectors >> 4 * (lane & 15) & 15);
    const bool valid = w.mask[from] || o.immediate2 & 1;
    if (valid || o.immediate2 & 2) put_u32(row, lane, w.mask[lane], valid ? data[from] : 0);
  }
}
// v_permlane16_var / v_permlanex16_var: b = selectors, a row.
inline void lane_permute_row_by(Wave& w, const Op& o) {
  const Copy data(dwords(w, o.a)), selectors(dwords(w, o.b));
  u32* row = dwords(w, o.d);
  for (u32 lane = 0; lane < w.lanes; ++lane) {
    const u32 from = ((lane & ~15u) ^ (o.immediate ? 16 : 0)) | (selectors[lane] & 15);
    put_u32(row, lane, w.mask[lane], w.mask[from] || o.immediate2 & 1 ? data[from] : 0);
  }
}
inline void lane_swap_halves(Wave& w, const Op& o) {  // v_permlane64: lanes 0..31 with 32..63
  if (w.lanes != 64) return;
  const Copy data(dwords(w, o.a));
  u32* row = dwords(w, o.d);
  for (u32 lane = 0; lane < 64; ++lane) put_u32(row, lane, w.mask[lane], data[lane ^ 32]);
}
// v_permlane16_swap / v_permlane32_swap: rows d and a exchange d's upper part with a's lower part; immediate = 16, 32.
inline void lane_exchange(Wave& w, const Op& o) {
  u32* first = dwords(w, o.d);
  u32* second = dwords(w, o.a);
  const u32 width = static_cast<u32>(o.immediate);
  for (u32 group = 0; group < w.lanes; group += 2 * width)
    for (u32 lane = group; lane < group + width; ++lane) {
      const u32 held = first[lane + width];
      first[lane + width] = second[lane];
      second[lane] = held;
    }
}
inline void swap_rows(Wave& w, const Op& o) {
  u32* first = dwords(w, o.d);
  u32* second = dwords(w, o.a);
  for (u32 lane = 0; lane < w.lanes; ++lane) {
    const u32 held = first[lane];
    put_u32(first, lane, w.mask[lane], second[lane]);
    put_u32(second, lane, w.mask[lane], held);
  }
}

// --- packed sources -------------------------------------------------------------------------------------------
// immediate: bit 0 = which half becomes the low one, bit 1 = the high one, bits 2 and 3 = their signs flip.
inline void arrange_halves(Wave& w, const Op& o) {
  const u32* source = dwords(w, o.a);
  u32* row = dwords(w, o.d);
  const u32 low = o.immediate & 1 ? 16 : 0, high = o.immediate & 2 ? 16 : 0;
  const u32 flip = (o.immediate & 4 ? 0x8000u : 0) | (o.immediate & 8 ? 0x80000000u : 0);
  for (Lane lane = 0; lane < kRowLanes; ++lane)
    row[lane] = ((source[lane] >> low & 0xffff) | (source[lane] >> high & 0xffff) << 16) ^ flip;
}
inline void arrange_rows(Wave& w, const Op& o) {  // the same for pairs of fp32
  const u32* source = dwords(w, o.a);
  u32* row = dwords(w, o.d);
  const Lane low = o.immediate & 1 ? kRowLanes : 0, high = o.immediate & 2 ? kRowLanes : 0;
  const u32 flip_low = o.immediate & 4 ? 0x80000000u : 0, flip_high = o.immediate & 8 ? 0x80000000u : 0;
  for (Lane lane = 0; lane < kRowLanes; ++lane) {
    row[lane] = source[lane + low] ^ flip_low;
    row[lane + kRowLanes] = source[lane + high] ^ flip_high;
  }
}
// An fp16 half as fp32: immediate = 1 for the high half.
inline void widen_half(Wave& w, const Op& o) {
  const u32* source = dwords(w, o.a);
  u32* row = dwords(w, o.d);
  const u32 shift = o.immediate ? 16 : 0;
  for (Lane lane = 0; lane < kRowLanes; ++lane) row[lane] = bits_of(f16_to_f32(source[lane] >> shift & 0xffff));
}
inline void finish_f16x2(Wave& w, const Op& o) {  // clamp to 0..1
  const u32* source = dwords(w, o.a);
  u32* row = dwords(w, o.d);
  for (Lane lane = 0; lane < w.lanes; ++lane)
    put_u32(row, lane, w.mask[lane], pair(f32_to_f16(unit_range(f16_to_f32(source[lane] & 0xffff))),
                                          f32_to_f16(unit_range(f16_to_f32(source[lane] >> 16)))));
}
inline void finish_f32x2(Wave& w, const Op& o) {
  const u32* source = dwords(w, o.a);
  u32* row = dwords(w, o.d);
  for (Lane r = 0; r < 2 * kRowLanes; r += kRowLanes)
    for (Lane lane = 0; lane < w.lanes; ++lane)
      put_f32(row + r, lane, w.mask[lane], unit_range(f32_from(source[lane + r])));
}

// v_pk_mov_b32: d = the row a, then the row b.
inline void pair_rows(Wave& w, const Op& o) {
  const u32 *low = dwords(w, o.a), *high = dwords(w, o.b);
  u32* row = dwords(w, o.d);
  for (Lane lane = 0; lane < w.lanes; ++lane)
    put_u64(row, lane, w.mask[lane], low[lane] | static_cast<u64>(high[lane]) << 32);
}
// Moves from or to a register whose number is relative: b = the scalar index; immediate = the first register's number,
// immediate2 = which side is relative (1 = source, 2 = result).
inline void move_relative(Wave& w, const Op& o) {
  const u64 index = *dwords(w, o.b);
  if (index + static_cast<u64>(o.immediate) >= w.launch->poisoned_rows)
    return trap(w, o, kBadRegister, 0, index + static_cast<u64>(o.immediate), 0);
  const u32* source = dwords(w, o.a) + (o.immediate2 == 1 ? index * kRowLanes : 0);
  u32* row = dwords(w, o.d) + (o.immediate2 == 2 ? index * kRowLanes : 0);
  for (Lane lane = 0; lane < w.lanes; ++lane) put_u32(row, lane, w.mask[lane], source[lane]);
}
