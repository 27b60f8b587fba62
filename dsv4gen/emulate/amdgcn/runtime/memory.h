// Global, flat and scratch accesses: generic addresses to host pointers, with bounds checks; cache-line counts.
#pragma once
#include "arithmetic.h"
#include "lds.h"

constexpr u64 kOutsideBuffer = 0xffffffff00000000ull;  // marks lanes whose buffer access is out of range

inline __attribute__((noinline)) u8* find_buffer(Wave& w, const Op& o, u32 lane, u64 address, u32 bytes, bool writes) {
  const Launch& launch = *w.launch;
  for (u64 i = 0; i < launch.buffer_count; ++i) {
    const Buffer& buffer = launch.buffers[i];
    const u64 offset = address - buffer.device;
    if (offset < buffer.bytes && bytes <= buffer.bytes - offset) {
      if (writes && !buffer.writable) {
        trap(w, o, kReadOnly, lane, address, bytes);
        return nullptr;
      }
      w.last = &buffer;
      return reinterpret_cast<u8*>(buffer.host + offset);
    }
  }
  trap(w, o, kOutOfBounds, lane, address, bytes);
  return nullptr;
}

// Scratch is one private block of bytes per lane.
inline u8* scratch_bytes(Wave& w, const Op& o, u32 lane, u32 offset, u32 bytes) {
  const Launch& launch = *w.launch;
  if (offset > launch.scratch_bytes || bytes > launch.scratch_bytes - offset) {
    trap(w, o, kScratchOutOfBounds, lane, offset, bytes);
    return nullptr;
  }
  return launch.scratch + static_cast<u64>(w.id * kRowLanes + lane) * launch.scratch_bytes + offset;
}

enum class Access { read, write, atomic };

// An access outside the buffer used last. The upper dword tells LDS and scratch from global memory.
template <Access kAccess> inline __attribute__((noinline)) u8* resolve_elsewhere(Wave& w, const Op& o, u32 lane, u64 address, u32 bytes) {
  const u32 low = static_cast<u32>(address);
  if (address >> 32 == kPrivateAperture) return scratch_bytes(w, o, lane, low, bytes);
  if (address >> 32 == kSharedAperture)
    return kAccess == Access::read ? lds_read(w, o, lane, low, bytes)
                                   : lds_write(w, o, lane, low, bytes, kAccess == Access::atomic, nullptr);
  return find_buffer(w, o, lane, address, bytes, kAccess != Access::read);
}

// The host address of `bytes` bytes, or null after a trap.
template <Access kAccess> ALWAYS_INLINE u8* resolve(Wave& w, const Op& o, u32 lane, u64 address, u32 bytes) {
  const Buffer* last = w.last;
  const u64 offset = address - last->device;
  const bool inside = offset < last->bytes && bytes <= last->bytes - offset;
  if (__builtin_expect(inside && (kAccess == Access::read || last->writable), 1))
    return reinterpret_cast<u8*>(last->host + offset);
  return resolve_elsewhere<kAccess>(w, o, lane, address, bytes);
}

// Counts the different cache lines that the active lanes touch, through a small hash set.
inline __attribute__((noinline)) void count_lines(Wave& w, const Op& o, const u32* addresses, u32 bytes) {
  Launch& launch = *w.launch;
  if (!launch.count_memory) return;
  constexpr u32 kPlaces = 512;
  u64 table[kPlaces];
  u8 taken[kPlaces] = {};
  u32 lines = 0;
  u64 previous = ~0ull;
  for (u64 left = exec_of(w); left; left &= left - 1) {
    const u32 lane = static_cast<u32>(__builtin_ctzll(left));
    const u64 address = get_u64(addresses, lane);
    if (address >= kOutsideBuffer) continue;
    for (u64 line = address >> launch.line_shift; line <= (address + bytes - 1) >> launch.line_shift; ++line) {
      if (line == previous) continue;
      previous = line;
      u32 place = static_cast<u32>(line * 0x9e3779b97f4a7c15ull >> 55);
      while (taken[place] && table[place] != line) place = (place + 1) % kPlaces;
      if (taken[place]) continue;
      taken[place] = 1;
      table[place] = line;
      ++lines;
    }
  }
  launch.memory_counts[o.instruction].lines += lines;
  launch.memory_counts[o.instruction].lanes += static_cast<u32>(__builtin_popcountll(exec_of(w)));
}

// Bytes of `wanted` that a lane may touch: buffer accesses can be cut at the buffer's end (x = bytes left there).
ALWAYS_INLINE u32 bytes_allowed(const u32* left, u32 lane, u32 wanted) {
  return left && left[lane] < wanted ? left[lane] / 4 * 4 : wanted;
}

// One value in memory as table rows name it: how many bytes, how they land in a register.
enum class Extend { zero, sign };
enum class Half { whole, low, high };

template <int kBytes, Extend kExtend> ALWAYS_INLINE u32 load_small(const u8* p) {
  if (kBytes == 1) return kExtend == Extend::sign ? static_cast<u32>(static_cast<i32>(static_cast<i8>(*p))) : *p;
  const u16 value = load_unaligned<u16>(p);
  return kExtend == Extend::sign ? static_cast<u32>(static_cast<i32>(static_cast<i16>(value))) : value;
}

template <Half kHalf> ALWAYS_INLINE void put_loaded(u32* row, u32 lane, u32 value) {
  if (kHalf == Half::whole) row[lane] = value;
  if (kHalf == Half::low) row[lane] = (row[lane] & 0xffff0000) | (value & 0xffff);
  if (kHalf == Half::high) row[lane] = (row[lane] & 0xffff) | value << 16;
}

// Sources: a = 64-bit addresses. The result is loaded into copies first, because it may overlap the addresses.
template <int kBytes, Extend kExtend, Half kHalf> void load_part(Wave& w, const Op& o) {
  u32* result = dwords(w, o.d);
  const u32* addresses = dwords(w, o.a);
  count_lines(w, o, addresses, kBytes);
  each_active_lane(w, [&](u32 lane) {
    const u64 address = get_u64(addresses, lane);
    if (address >= kOutsideBuffer) return put_loaded<kHalf>(result, lane, 0);
    const u8* p = resolve<Access::read>(w, o, lane, address, kBytes);
    if (p) put_loaded<kHalf>(result, lane, load_small<kBytes, kExtend>(p));
  });
}

template <int kDwords> void load_dwords(Wave& w, const Op& o) {
  u32* result = dwords(w, o.d);
  const u32* addresses = dwords(w, o.a);
  const u32* left = o.x ? dwords(w, o.x) : nullptr;
  count_lines(w, o, addresses, 4 * kDwords);
  each_active_lane(w, [&](u32 lane) {
    const u64 address = get_u64(addresses, lane);
    u32 values[kDwords] = {};
    if (address < kOutsideBuffer) {
      const u32 bytes = bytes_allowed(left, lane, sizeof values);
      const u8* p = resolve<Access::read>(w, o, lane, address, bytes);
      if (!p) return;
      for (u32 i = 0; i < bytes / 4; ++i) values[i] = load_unaligned<u32>(p + 4 * i);
    }
    for (u32 i = 0; i < kDwords; ++i) result[lane + i * kRowLanes] = values[i];
  });
}

// Sources: a = 64-bit addresses, b = data.
template <int kBytes, Half kHalf> void store_part(Wave& w, const Op& o) {
  const u32* addresses = dwords(w, o.a);
  const u32* data = dwords(w, o.b);
  count_lines(w, o, addresses, kBytes);
  each_active_lane(w, [&](u32 lane) {
    const u64 address = get_u64(addresses, lane);
    if (address >= kOutsideBuffer) return;
    u8* p = resolve<Access::write>(w, o, lane, address, kBytes);
    const u32 value = kHalf == Half::high ? data[lane] >> 16 : data[lane];
    if (p) __builtin_memcpy(p, &value, kBytes);
  });
}

template <int kDwords> void store_dwords(Wave& w, const Op& o) {
  const u32* addresses = dwords(w, o.a);
  const u32* data = dwords(w, o.b);
  const u32* left = o.x ? dwords(w, o.x) : nullptr;
  count_lines(w, o, addresses, 4 * kDwords);
  each_active_lane(w, [&](u32 lane) {
    const u64 address = get_u64(addresses, lane);
    if (address >= kOutsideBuffer) return;
    const u32 bytes = bytes_allowed(left, lane, 4 * kDwords);
    u8* p = resolve<Access::write>(w, o, lane, address, bytes);
    if (!p) return;
    for (u32 i = 0; i < bytes / 4; ++i) store_unaligned(p + 4 * i, data[lane + i * kRowLanes]);
  });
}

// Atomic updates: a = addresses, b = data (for compare-and-swap: new value, then the value compared with).
template <class T> ALWAYS_INLINE T get_value(const u32* row, u32 lane) {
  return sizeof(T) == 8 ? static_cast<T>(get_u64(row, lane)) : static_cast<T>(get_u32(row, lane));
}
template <class T> ALWAYS_INLINE void put_value(u32* row, u32 lane, T value) {
  if (sizeof(T) == 8) put_u64(row, lane, ~0u, value);
  else put_u32(row, lane, ~0u, static_cast<u32>(value));
}

template <class T, class F> ALWAYS_INLINE void update_memory(Wave& w, const Op& o, F change) {
  const u32* addresses = dwords(w, o.a);
  const u32* data = dwords(w, o.b);
  const u32* compared = dwords(w, o.c);
  u32* result = o.immediate ? dwords(w, o.d) : nullptr;
  count_lines(w, o, addresses, sizeof(T));
  each_active_lane(w, [&](u32 lane) {
    const u64 address = get_u64(addresses, lane);
    T old = 0;
    if (address < kOutsideBuffer) {
      u8* p = resolve<Access::atomic>(w, o, lane, address, sizeof(T));
      if (!p) return;
      old = load_unaligned<T>(p);
      store_unaligned<T>(p, change(old, get_value<T>(data, lane), get_value<T>(compared, lane)));
    }
    if (result) put_value<T>(result, lane, old);
  });
}

// --- addresses ------------------------------------------------------------------------------------------------
// d = 64-bit addresses. a = 64-bit row, or 32-bit offsets from the scalar base b; immediate = constant offset.
inline void address_global(Wave& w, const Op& o) {
  u32* result = dwords(w, o.d);
  const u32* row = dwords(w, o.a);
  for (Lane base = 0; base < w.lanes; base += 32)
    INDEPENDENT_LANES for (Lane lane = base; lane < base + 32; ++lane)
      put_u64(result, lane, ~0u, get_u64(row, lane) + static_cast<u64>(o.immediate));
}
inline void address_scalar_base(Wave& w, const Op& o) {
  u32* result = dwords(w, o.d);
  const u32* row = dwords(w, o.a);
  const u64 start = read_u64(dwords(w, o.b)) + static_cast<u64>(o.immediate);
  for (Lane base = 0; base < w.lanes; base += 32)
    INDEPENDENT_LANES for (Lane lane = base; lane < base + 32; ++lane) put_u64(result, lane, ~0u, start + row[lane]);
}
// Scratch: a = offsets of lanes (or zeros), b = scalar offset.
inline void address_scratch(Wave& w, const Op& o) {
  u32* result = dwords(w, o.d);
  const u32* row = dwords(w, o.a);
  const u32 start = *dwords(w, o.b) + static_cast<u32>(o.immediate);
  for (u32 lane = 0; lane < w.lanes; ++lane) put_u64(result, lane, ~0u, kPrivateAperture << 32 | (start + row[lane]));
}

constexpr i64 kIndexed = 1;
// Buffers: a = offsets, c = indices (with kIndexed in immediate2), b = descriptor, e = scalar offset.
// x = bytes between the address and the buffer's end. Only linear buffers and the compiler's own scratch descriptor
// (bit 23 of dword 3: lane number added) are known.
inline void address_buffer(Wave& w, const Op& o) {
  u32* result = dwords(w, o.d);
  u32* left = dwords(w, o.x);
  const u32* descriptor = dwords(w, o.b);
  const u32* offsets = dwords(w, o.a);
  const u32* indices = dwords(w, o.c);
  const u32 scalar = *dwords(w, o.e), constant = static_cast<u32>(o.immediate);
  const u64 start = (read_u64(descriptor) & 0xffffffffffff) + scalar;
  const u32 stride = descriptor[1] >> 16 & 0x3fff, records = descriptor[2];
  const bool scratch = descriptor[3] >> 23 & 1, indexed = o.immediate2 & kIndexed;
  if (!scratch && descriptor[1] >> 31) return trap(w, o, kUnsupportedDescriptor, 0, descriptor[1], 0);
  for (u32 lane = 0; lane < w.lanes; ++lane) {
    const u64 offset = static_cast<u64>(offsets[lane]) + constant;
    u64 address, room;
    if (scratch) {  // the scalar offset counts bytes of the whole wave
      address = kPrivateAperture << 32 | static_cast<u32>(offset + scalar / w.lanes);
      room = ~0u;
    } else if (indexed && stride) {
      address = start + static_cast<u64>(indices[lane]) * stride + offset;
      room = indices[lane] < records && offset < stride ? stride - offset : 0;
    } else {
      const u64 linear = offset + (indexed ? indices[lane] : 0);
      address = start + linear;
      room = linear + scalar < records ? records - linear - scalar : 0;
    }
    left[lane] = static_cast<u32>(room > 0xffffffff ? 0xffffffff : room);
    put_u64(result, lane, ~0u, room ? address : kOutsideBuffer);
  }
}

// Scalar loads: d = result, a = base (64 bits), b = scalar offset; immediate = constant offset.
template <int kDwords> void scalar_load(Wave& w, const Op& o) {
  const u64 address = (read_u64(dwords(w, o.a)) + *dwords(w, o.b) + static_cast<u64>(o.immediate)) & ~3ull;
  const u8* p = resolve<Access::read>(w, o, 0, address, 4 * kDwords);
  if (!p) return;
  u32* result = dwords(w, o.d);
  for (u32 i = 0; i < kDwords; ++i) result[i] = load_unaligned<u32>(p + 4 * i);
}
template <int kBytes, Extend kExtend> void scalar_load_part(Wave& w, const Op& o) {
  const u64 address = read_u64(dwords(w, o.a)) + *dwords(w, o.b) + static_cast<u64>(o.immediate);
  const u8* p = resolve<Access::read>(w, o, 0, address, kBytes);
  if (p) *dwords(w, o.d) = load_small<kBytes, kExtend>(p);
}
// The same through a buffer descriptor: dwords beyond the buffer read as 0.
template <int kDwords> void scalar_buffer_load(Wave& w, const Op& o) {
  const u32* descriptor = dwords(w, o.a);
  const u64 offset = (*dwords(w, o.b) + static_cast<u64>(o.immediate)) & ~3ull, start = read_u64(descriptor) & 0xffffffffffff;
  const u32 stride = descriptor[1] >> 16 & 0x3fff;
  const u64 bytes = static_cast<u64>(descriptor[2]) * (stride ? stride : 1);
  u32 values[kDwords] = {};
  for (u32 i = 0; i < kDwords; ++i) {
    if (offset + 4 * i + 4 > bytes) continue;
    const u8* p = resolve<Access::read>(w, o, 0, start + offset + 4 * i, 4);
    if (!p) return;
    values[i] = load_unaligned<u32>(p);
  }
  u32* result = dwords(w, o.d);
  for (u32 i = 0; i < kDwords; ++i) result[i] = values[i];
}
