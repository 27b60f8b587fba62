// Typed reads and writes of one lane of a register row. Names follow the types used in the tables: get_u16 reads
// the low half of the dword, put_u16 clears the high half; 64-bit values take two rows. Masks are 0 or ~0.
#pragma once
#include "formats.h"
#include "wave.h"

ALWAYS_INLINE u32 get_u32(const u32* row, Lane lane) { return row[lane]; }
ALWAYS_INLINE i32 get_i32(const u32* row, Lane lane) { return static_cast<i32>(row[lane]); }
ALWAYS_INLINE f32 get_f32(const u32* row, Lane lane) { return f32_from(row[lane]); }
ALWAYS_INLINE u32 get_u16(const u32* row, Lane lane) { return row[lane] & 0xffff; }
ALWAYS_INLINE i32 get_i16(const u32* row, Lane lane) { return static_cast<i16>(row[lane]); }
ALWAYS_INLINE f32 get_f16(const u32* row, Lane lane) { return f16_to_f32(row[lane] & 0xffff); }
ALWAYS_INLINE f32 get_bf16(const u32* row, Lane lane) { return bf16_to_f32(row[lane] & 0xffff); }
ALWAYS_INLINE u64 get_u64(const u32* row, Lane lane) { return row[lane] | static_cast<u64>(row[lane + kRowLanes]) << 32; }
ALWAYS_INLINE i64 get_i64(const u32* row, Lane lane) { return static_cast<i64>(get_u64(row, lane)); }
ALWAYS_INLINE f64 get_f64(const u32* row, Lane lane) { return f64_from(get_u64(row, lane)); }

ALWAYS_INLINE void put_u32(u32* row, Lane lane, u32 mask, u32 value) { row[lane] = (value & mask) | (row[lane] & ~mask); }
ALWAYS_INLINE void put_i32(u32* row, Lane lane, u32 mask, i32 value) { put_u32(row, lane, mask, static_cast<u32>(value)); }
ALWAYS_INLINE void put_f32(u32* row, Lane lane, u32 mask, f32 value) { put_u32(row, lane, mask, bits_of(value)); }
ALWAYS_INLINE void put_u16(u32* row, Lane lane, u32 mask, u32 value) { put_u32(row, lane, mask, value & 0xffff); }
ALWAYS_INLINE void put_i16(u32* row, Lane lane, u32 mask, i32 value) { put_u16(row, lane, mask, static_cast<u32>(value)); }
ALWAYS_INLINE void put_f16(u32* row, Lane lane, u32 mask, f32 value) { put_u32(row, lane, mask, f32_to_f16(value)); }
ALWAYS_INLINE void put_bf16(u32* row, Lane lane, u32 mask, f32 value) { put_u32(row, lane, mask, f32_to_bf16(value)); }
ALWAYS_INLINE void put_u64(u32* row, Lane lane, u32 mask, u64 value) {
  put_u32(row, lane, mask, static_cast<u32>(value));
  put_u32(row + kRowLanes, lane, mask, static_cast<u32>(value >> 32));
}
ALWAYS_INLINE void put_i64(u32* row, Lane lane, u32 mask, i64 value) { put_u64(row, lane, mask, static_cast<u64>(value)); }
ALWAYS_INLINE void put_f64(u32* row, Lane lane, u32 mask, f64 value) { put_u64(row, lane, mask, bits_of(value)); }

ALWAYS_INLINE u32 read_u32(const u32* s) { return s[0]; }
ALWAYS_INLINE i32 read_i32(const u32* s) { return static_cast<i32>(s[0]); }
ALWAYS_INLINE f32 read_f32(const u32* s) { return f32_from(s[0]); }
ALWAYS_INLINE f32 read_f16(const u32* s) { return f16_to_f32(s[0] & 0xffff); }
ALWAYS_INLINE u64 read_u64(const u32* s) { return s[0] | static_cast<u64>(s[1]) << 32; }
ALWAYS_INLINE i64 read_i64(const u32* s) { return static_cast<i64>(read_u64(s)); }

ALWAYS_INLINE void write_u32(u32* s, u32 value) { s[0] = value; }
ALWAYS_INLINE void write_i32(u32* s, i32 value) { s[0] = static_cast<u32>(value); }
ALWAYS_INLINE void write_f32(u32* s, f32 value) { s[0] = bits_of(value); }
ALWAYS_INLINE void write_f16(u32* s, f32 value) { s[0] = f32_to_f16(value); }
ALWAYS_INLINE void write_u64(u32* s, u64 value) {
  s[0] = static_cast<u32>(value);
  s[1] = static_cast<u32>(value >> 32);
}
ALWAYS_INLINE void write_i64(u32* s, i64 value) { write_u64(s, static_cast<u64>(value)); }

// 32 flags of 0 or 1, a byte each, as 32 bits.
ALWAYS_INLINE u32 pack_flags(const u8* flags) {
  u32 bits = 0;
  for (u32 i = 0; i < 4; ++i) {
    const u64 eight = load_unaligned<u64>(flags + 8 * i);
    bits |= static_cast<u32>(eight * 0x0102040810204080ull >> 56) << 8 * i;
  }
  return bits;
}

// Expands EXEC into the mask row; to be called after every write to EXEC.
ALWAYS_INLINE void refresh_mask(Wave& w) {
  for (u32 base = 0; base < w.lanes; base += 32) {
    const u32 bits = w.s[kExec + base / 32];
    u32* mask = w.mask + base;
    INDEPENDENT_LANES for (u32 l = 0; l < 32; ++l) mask[l] = 0u - (bits >> l & 1);
  }
}

// Stores a mask of lanes: two dwords on wave64, one on wave32.
ALWAYS_INLINE void write_mask(Wave& w, u32* s, u64 mask) {
  s[0] = static_cast<u32>(mask);
  if (w.lanes == 64) s[1] = static_cast<u32>(mask >> 32);
}
ALWAYS_INLINE u64 read_mask(Wave& w, const u32* s) { return w.lanes == 64 ? read_u64(s) : s[0]; }
