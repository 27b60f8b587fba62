// LDS accesses: bounds, never-written bytes, and a race detector with one record per byte.
//
// Two waves race when they touch a byte in the same barrier interval, one of them writes, and not both are atomic.
// A write that stores what is there already is no race with earlier accesses: compilers let several waves initialise
// the same bytes alike.
// Records are stamped with the interval instead of being cleared at each barrier.
#pragma once
#include "values.h"

constexpr u32 kAllBytes = 0x01010101;
constexpr u32 kAtomicFlag = 0x80;
constexpr u32 kManyWaves = 0x7f;

ALWAYS_INLINE void refresh_shadow(const Launch& launch, Shadow& shadow) {
  if (shadow.epoch == launch.epoch) return;
  if (shadow.epoch < launch.block_epoch) shadow.written = 0;
  shadow.writers = shadow.readers = 0;
  shadow.epoch = launch.epoch;
}

inline __attribute__((noinline)) void check_byte_read(Wave& w, const Op& o, Shadow& shadow, u32 address, u32 lane) {
  const u32 shift = 8 * (address & 3), me = w.id + 1;
  if (!(shadow.written >> shift & 1)) report(*w.launch, kUninitialisedLds, o.instruction, 0, w.id, 0, lane, address);
  const u32 writer = shadow.writers >> shift & 255;
  if (writer && writer != me && writer != (me | kAtomicFlag))
    report(*w.launch, kRaceReadAfterWrite, o.instruction, shadow.write_at[address & 3], w.id,
           (writer & kManyWaves) - 1, lane, address);
  const u32 reader = shadow.readers >> shift & 255;
  const u32 now = reader == 0 || reader == me ? me : kManyWaves;
  shadow.readers = (shadow.readers & ~(255u << shift)) | now << shift;
  shadow.read_at[address & 3] = o.instruction;
}

inline __attribute__((noinline)) void check_byte_write(Wave& w, const Op& o, Shadow& shadow, u32 address, u32 lane, bool atomic,
                                                         const u8* value) {
  const u32 shift = 8 * (address & 3), me = w.id + 1;
  const u32 writer = shadow.writers >> shift & 255, other = writer & kManyWaves;
  const bool both_atomic = atomic && (writer & kAtomicFlag);
  const bool unchanged = value && (shadow.written >> shift & 1) && *value == w.launch->lds[address];
  if (writer && other != me && !both_atomic && !unchanged)
    report(*w.launch, kRaceWriteAfterWrite, o.instruction, shadow.write_at[address & 3], w.id, other - 1, lane, address);
  const u32 reader = shadow.readers >> shift & 255;
  if (reader && reader != me && !unchanged)
    report(*w.launch, kRaceWriteAfterRead, o.instruction, shadow.read_at[address & 3], w.id, reader - 1, lane, address);
  if (atomic && !(shadow.written >> shift & 1))
    report(*w.launch, kUninitialisedLds, o.instruction, 0, w.id, 0, lane, address);
  u32 now = unchanged && writer && other != me ? kManyWaves : me;
  if (atomic) {
    if (writer == me) now = me;
    else now = kAtomicFlag | (writer == 0 || other == me ? me : kManyWaves);
  }
  shadow.writers = (shadow.writers & ~(255u << shift)) | now << shift;
  shadow.written |= 1u << shift;
  shadow.write_at[address & 3] = o.instruction;
}

ALWAYS_INLINE bool lds_in_bounds(Wave& w, const Op& o, u32 lane, u32 address, u32 bytes) {
  const u32 size = w.launch->lds_bytes;
  if (__builtin_expect(address <= size && bytes <= size - address, 1)) return true;
  trap(w, o, kLdsOutOfBounds, lane, address, bytes);
  return false;
}

ALWAYS_INLINE void set_all(u32* four, u32 value) {
  for (u32 i = 0; i < 4; ++i) four[i] = value;
}

// Reads of one instruction: lanes that read what the lane before them read (a broadcast) are checked once.
struct LdsReader {
  u32 previous = ~0u;
  u8* found = nullptr;
  u8* read(Wave& w, const Op& o, u32 lane, u32 address, u32 bytes);
};

// Checks a read of `bytes` bytes; null after a trap.
ALWAYS_INLINE u8* lds_read(Wave& w, const Op& o, u32 lane, u32 address, u32 bytes) {
  if (!lds_in_bounds(w, o, lane, address, bytes)) return nullptr;
  Launch& launch = *w.launch;
  const u32 me = (w.id + 1) * kAllBytes;
  u32 left = bytes, at = address;
  while (left) {
    Shadow& shadow = launch.shadow[at >> 2];
    refresh_shadow(launch, shadow);
    const u32 readers = shadow.readers;
    const bool fine = (shadow.writers == 0 || shadow.writers == me) && readers == (readers & 255) * kAllBytes;
    if (__builtin_expect((at & 3) == 0 && left >= 4 && fine && shadow.written == kAllBytes, 1)) {
      shadow.readers = readers == 0 || readers == me ? me : kManyWaves * kAllBytes;
      set_all(shadow.read_at, o.instruction);
      at += 4;
      left -= 4;
    } else {
      check_byte_read(w, o, shadow, at, lane);
      ++at;
      --left;
    }
  }
  return launch.lds + address;
}

ALWAYS_INLINE u8* LdsReader::read(Wave& w, const Op& o, u32 lane, u32 address, u32 bytes) {
  if (address != previous || !found) found = lds_read(w, o, lane, address, bytes);
  previous = address;
  return found;
}

// Records a write of a whole dword; false when its bytes have to be looked at one by one.
ALWAYS_INLINE bool write_whole_dword(Wave& w, const Op& o, Shadow& shadow, bool atomic) {
  const u32 me = (w.id + 1) * kAllBytes, all_atomic = kAtomicFlag * kAllBytes, writers = shadow.writers;
  if (shadow.readers != 0 && shadow.readers != me) return false;
  if (atomic) {
    if (shadow.written != kAllBytes) return false;
    if (writers != 0 && writers != me && (writers & all_atomic) != all_atomic) return false;
    // A plain write of this wave stays plain: another wave's atomic on it is a race.
    const u32 mine = me | all_atomic;
    if (writers != me) shadow.writers = writers == 0 || writers == mine ? mine : ~0u;
  } else {
    if (writers != 0 && writers != me) return false;
    shadow.writers = me;
  }
  shadow.written = kAllBytes;
  set_all(shadow.write_at, o.instruction);
  return true;
}

// Checks a write (or an atomic update) of `bytes` bytes; null after a trap. `value` is what will be written, if known.
ALWAYS_INLINE u8* lds_write(Wave& w, const Op& o, u32 lane, u32 address, u32 bytes, bool atomic, const void* value) {
  if (!lds_in_bounds(w, o, lane, address, bytes)) return nullptr;
  Launch& launch = *w.launch;
  u32 left = bytes, at = address;
  while (left) {
    Shadow& shadow = launch.shadow[at >> 2];
    refresh_shadow(launch, shadow);
    if ((at & 3) == 0 && left >= 4 && write_whole_dword(w, o, shadow, atomic)) {
      at += 4;
      left -= 4;
    } else {
      check_byte_write(w, o, shadow, at, lane, atomic,
                       value ? static_cast<const u8*>(value) + (at - address) : nullptr);
      ++at;
      --left;
    }
  }
  return launch.lds + address;
}

inline __attribute__((noinline)) u8* lds_update_slowly(Wave& w, const Op& o, u32 lane, u32 address, u32 bytes) {
  return lds_write(w, o, lane, address, bytes, true, nullptr);
}

// An atomic update. Some forty instructions use it, so only the common case is inlined.
ALWAYS_INLINE u8* lds_update(Wave& w, const Op& o, u32 lane, u32 address, u32 bytes) {
  Launch& launch = *w.launch;
  if (bytes == 4 && (address & 3) == 0 && address < launch.lds_bytes && launch.lds_bytes - address >= 4) {
    Shadow& shadow = launch.shadow[address >> 2];
    refresh_shadow(launch, shadow);
    if (write_whole_dword(w, o, shadow, true)) return launch.lds + address;
  }
  return lds_update_slowly(w, o, lane, address, bytes);
}

// Counts the extra cycles that bank conflicts cost: lanes go in groups that could use every bank once, and a group
// takes as many cycles as the fullest bank has different dwords.
struct BankGroup {
  static constexpr u32 kMost = 256, kNone = ~0u;
  u32 first[64], others[kMost], kept = 0, fullest = 1;
  u8 used[64];
  explicit BankGroup(u32 banks) {
    for (u32 i = 0; i < banks; ++i) first[i] = kNone;
  }
  void add(u32 dword, u32 bank) {
    if (first[bank] == dword) return;
    if (first[bank] == kNone) {
      first[bank] = dword;
      used[bank] = 1;
      return;
    }
    for (u32 i = 0; i < kept; ++i)
      if (others[i] == dword) return;
    others[kept++] = dword;
    if (++used[bank] > fullest) fullest = used[bank];
  }
};

inline __attribute__((noinline)) void count_banks(Wave& w, const Op& o, const u32* addresses, u32 offset, u32 dwords_per_lane) {
  Launch& launch = *w.launch;
  if (!launch.count_memory) return;
  const u32 lanes_at_once = launch.banks / dwords_per_lane;
  MemoryCount& count = launch.memory_counts[o.instruction];
  for (u32 begin = 0; begin < w.lanes; begin += lanes_at_once) {
    BankGroup group(launch.banks);
    for (u32 lane = begin; lane < begin + lanes_at_once && lane < w.lanes; ++lane)
      if (w.mask[lane])
        for (u32 part = 0; part < dwords_per_lane; ++part) {
          const u32 dword = (addresses[lane] + offset) / 4 + part;
          group.add(dword, dword & (launch.banks - 1));
        }
    count.conflicts += group.fullest - 1;
  }
  count.lanes += static_cast<u32>(__builtin_popcountll(exec_of(w)));
}
