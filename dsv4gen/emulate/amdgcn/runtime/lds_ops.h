// ds_* instructions: a = byte addresses (32 bits), immediate = constant offset.
#pragma once
#include "memory.h"

template <int kBytes, Extend kExtend, Half kHalf> void lds_load_part(Wave& w, const Op& o) {
  u32* result = dwords(w, o.d);
  const u32* addresses = dwords(w, o.a);
  count_banks(w, o, addresses, static_cast<u32>(o.immediate), 1);
  each_active_lane(w, [&](u32 lane) {
    const u8* p = lds_read(w, o, lane, addresses[lane] + static_cast<u32>(o.immediate), kBytes);
    if (p) put_loaded<kHalf>(result, lane, load_small<kBytes, kExtend>(p));
  });
}
template <int kDwords> void lds_load(Wave& w, const Op& o) {
  u32* result = dwords(w, o.d);
  const u32* addresses = dwords(w, o.a);
  count_banks(w, o, addresses, static_cast<u32>(o.immediate), kDwords);
  LdsReader reader;
  each_active_lane(w, [&](u32 lane) {
    const u8* p = reader.read(w, o, lane, addresses[lane] + static_cast<u32>(o.immediate), 4 * kDwords);
    if (!p) return;
    for (u32 i = 0; i < kDwords; ++i) result[lane + i * kRowLanes] = load_unaligned<u32>(p + 4 * i);
  });
}
template <int kBytes, Half kHalf> void lds_store_part(Wave& w, const Op& o) {
  const u32* addresses = dwords(w, o.a);
  const u32* data = dwords(w, o.b);
  count_banks(w, o, addresses, static_cast<u32>(o.immediate), 1);
  each_active_lane(w, [&](u32 lane) {
    const u32 value = kHalf == Half::high ? data[lane] >> 16 : data[lane];
    u8* p = lds_write(w, o, lane, addresses[lane] + static_cast<u32>(o.immediate), kBytes, false, &value);
    if (p) __builtin_memcpy(p, &value, kBytes);
  });
}
template <int kDwords> void lds_store(Wave& w, const Op& o) {
  const u32* addresses = dwords(w, o.a);
  const u32* data = dwords(w, o.b);
  count_banks(w, o, addresses, static_cast<u32>(o.immediate), kDwords);
  each_active_lane(w, [&](u32 lane) {
    u32 values[kDwords];
    for (u32 i = 0; i < kDwords; ++i) values[i] = data[lane + i * kRowLanes];
    u8* p = lds_write(w, o, lane, addresses[lane] + static_cast<u32>(o.immediate), sizeof values, false, values);
    if (p) __builtin_memcpy(p, values, sizeof values);
  });
}
// Two accesses by one instruction: immediate and immediate2 are the two byte offsets.
template <int kDwords> void lds_load_two(Wave& w, const Op& o) {
  u32* result = dwords(w, o.d);
  const u32* addresses = dwords(w, o.a);
  count_banks(w, o, addresses, static_cast<u32>(o.immediate), kDwords);
  count_banks(w, o, addresses, static_cast<u32>(o.immediate2), kDwords);
  LdsReader first_reader, second_reader;
  each_active_lane(w, [&](u32 lane) {
    const u32 address = addresses[lane];
    const u8* first = first_reader.read(w, o, lane, address + static_cast<u32>(o.immediate), 4 * kDwords);
    const u8* second =
        first ? second_reader.read(w, o, lane, address + static_cast<u32>(o.immediate2), 4 * kDwords) : nullptr;
    if (!second) return;
    for (u32 i = 0; i < kDwords; ++i) {
      result[lane + i * kRowLanes] = load_unaligned<u32>(first + 4 * i);
      result[lane + (kDwords + i) * kRowLanes] = load_unaligned<u32>(second + 4 * i);
    }
  });
}
template <int kDwords> void lds_store_two(Wave& w, const Op& o) {
  const u32* addresses = dwords(w, o.a);
  const u32* data[2] = {dwords(w, o.b), dwords(w, o.c)};
  const u32 offsets[2] = {static_cast<u32>(o.immediate), static_cast<u32>(o.immediate2)};
  for (u32 half = 0; half < 2; ++half) {
    count_banks(w, o, addresses, offsets[half], kDwords);
    each_active_lane(w, [&](u32 lane) {
      u32 values[kDwords];
      for (u32 i = 0; i < kDwords; ++i) values[i] = data[half][lane + i * kRowLanes];
      u8* p = lds_write(w, o, lane, addresses[lane] + offsets[half], sizeof values, false, values);
      if (p) __builtin_memcpy(p, values, sizeof values);
    });
  }
}
// Atomic updates: b = data, c = second data; immediate2 tells whether the old value is returned in d.
template <class T, class F> ALWAYS_INLINE void update_lds(Wave& w, const Op& o, F change) {
  const u32* addresses = dwords(w, o.a);
  const u32* data = dwords(w, o.b);
  const u32* compared = dwords(w, o.c);
  u32* result = o.immediate2 ? dwords(w, o.d) : nullptr;
  count_banks(w, o, addresses, static_cast<u32>(o.immediate), sizeof(T) / 4);
  each_active_lane(w, [&](u32 lane) {
    u8* p = lds_update(w, o, lane, addresses[lane] + static_cast<u32>(o.immediate), sizeof(T));
    if (!p) return;
    const T old = load_unaligned<T>(p);
    store_unaligned<T>(p, change(old, get_value<T>(data, lane), get_value<T>(compared, lane)));
    if (result) put_value<T>(result, lane, old);
  });
}

// ds_read_*_tr_*: every lane loads 64 (or 96) bits; in each group of 16 lanes the loads are rows of a matrix with 16
// columns of `kBits` bits, and lane i gets column i.
template <int kBits> void lds_load_transposed(Wave& w, const Op& o) {
  constexpr u32 kDwords = kBits == 6 ? 3 : 2, kElements = 32 * kDwords / kBits, kLanesPerRow = 16 / kElements ? 16 / kElements : 1;
  const u32* addresses = dwords(w, o.a);
  u32 loaded[kRowLanes][kDwords + 1] = {};
  count_banks(w, o, addresses, static_cast<u32>(o.immediate), 2);
  each_active_lane(w, [&](u32 lane) {
    const u8* p = lds_read(w, o, lane, addresses[lane] + static_cast<u32>(o.immediate), 4 * kDwords);
    if (p) __builtin_memcpy(loaded[lane], p, 4 * kDwords);
  });
  if (w.stop != kRunning) return;
  u32* result = dwords(w, o.d);
  for (u32 lane = 0; lane < w.lanes; ++lane) {
    u32 packed[kDwords + 1] = {};
    for (u32 e = 0; e < kElements; ++e) {
      const u32 column = lane % 16, from = lane / 16 * 16 + e * kLanesPerRow + column / kElements;
      const u32 bit = column % kElements * kBits, to = e * kBits;
      const u64 two = loaded[from][bit / 32] | static_cast<u64>(loaded[from][bit / 32 + 1]) << 32;
      const u64 value = (two >> bit % 32 & ((1ull << kBits) - 1)) << to % 32;
      packed[to / 32] |= static_cast<u32>(value);
      packed[to / 32 + 1] |= static_cast<u32>(value >> 32);
    }
    for (u32 i = 0; i < kDwords; ++i) put_u32(result + i * kRowLanes, lane, w.mask[lane], packed[i]);
  }
}

// Loads from memory straight into LDS: a = addresses (x: bytes left in the buffer), M0 = LDS base, immediate = offset;
// lane i writes at base + offset + i * size.
template <int kBytes> void load_into_lds(Wave& w, const Op& o) {
  const u32* addresses = dwords(w, o.a);
  const u32 base = (w.s[kM0] & 0xffff) + static_cast<u32>(o.immediate);
  constexpr u32 kStep = kBytes < 4 ? 4 : kBytes;
  const u32* left = o.x ? dwords(w, o.x) : nullptr;
  count_lines(w, o, addresses, kBytes);
  each_active_lane(w, [&](u32 lane) {
    const u64 address = get_u64(addresses, lane);
    u32 values[4] = {};
    if (address < kOutsideBuffer) {
      const u32 bytes = kBytes < 4 ? kBytes : bytes_allowed(left, lane, kBytes);
      const u8* p = resolve<Access::read>(w, o, lane, address, bytes);
      if (!p) return;
      for (u32 i = 0; i < bytes; ++i) reinterpret_cast<u8*>(values)[i] = p[i];
    }
    u8* target = lds_write(w, o, lane, base + lane * kStep, kStep, false, values);
    if (target) __builtin_memcpy(target, values, kStep);
  });
}
