// Memory of the worker: fiber stacks, shared memory of blocks, and the window that shows the launch's arrays.
// Everything is reserved once and touched on use, so that a launch costs no system calls of its own.
#pragma once

#include <string.h>
#include <sys/mman.h>

#include "protocol.h"

constexpr u64 kPage = 4096;
constexpr u8 kPoison = 0xCD;

// Address space without memory behind it until it is touched; null when the system refuses.
inline char* reserve(u64 bytes, int protection, char* wanted = nullptr) {
  void* got = mmap(wanted, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED || (wanted != nullptr && got != wanted)) return nullptr;
  return static_cast<char*>(got);
}

// -- stacks: each above a page that traps
// An odd number of pages apart, and starting at different lines of a page: or all would fight for the same cache sets.
constexpr u64 kStackBytes = 17 * kPage;
constexpr u32 kMaxThreads = 16 * 1024;  // the largest cluster of the largest blocks

struct Stacks {
  char* memory = nullptr;
  u32 guarded = 0;

  bool prepare(u32 count) {
    if (memory == nullptr) memory = reserve(kMaxThreads * kStackBytes, PROT_READ | PROT_WRITE);
    if (memory == nullptr || count > kMaxThreads) return false;
    for (; guarded < count; ++guarded) mprotect(memory + guarded * kStackBytes, kPage, PROT_NONE);
    return true;
  }
  char* low(u32 index) const { return memory + index * kStackBytes + kPage; }
  u64 bytes(u32 index) const { return kStackBytes - kPage - (index / 16 % 32) * 128; }
  bool contains(u64 address) const {
    const u64 start = reinterpret_cast<u64>(memory);
    return memory != nullptr && address >= start && address < start + kMaxThreads * kStackBytes;
  }
};

// -- shared memory: the struct ends where a page begins that traps; below it lies a guard zone that is checked
constexpr u64 kSlotBytes = 1 << 20;
constexpr u64 kGuardBytes = 1024;
constexpr u32 kMaxClusterBlocks = 16;

struct SharedSlot {
  char* end = nullptr;   // first byte of the page that traps
  char* base = nullptr;  // the block's struct; null until a thread has declared it
  u32 bytes = 0, alignment = 1;

  void declare(u32 size, u32 wanted_alignment) {
    alignment = wanted_alignment;
    const u64 low = (reinterpret_cast<u64>(end) - size) & ~static_cast<u64>(alignment - 1);
    base = reinterpret_cast<char*>(low);
    bytes = size;
    memset(base - kGuardBytes, kPoison, static_cast<u64>(end - base) + kGuardBytes);
  }
  // Offset from the struct's start of a byte that was written outside of it; 0 when there is none.
  i64 overwritten() const {
    for (i64 offset = -static_cast<i64>(kGuardBytes); base + offset < end; ++offset) {
      if (offset == 0) offset = bytes;
      if (base + offset < end && static_cast<u8>(base[offset]) != kPoison) return offset;
    }
    return 0;
  }
};

struct SharedArea {
  char* memory = nullptr;

  bool prepare() {
    if (memory != nullptr) return true;
    memory = reserve(kMaxClusterBlocks * (kSlotBytes + kPage), PROT_READ | PROT_WRITE);
    for (u32 rank = 0; memory != nullptr && rank < kMaxClusterBlocks; ++rank) mprotect(end(rank), kPage, PROT_NONE);
    return memory != nullptr;
  }
  char* end(u32 rank) const { return memory + rank * (kSlotBytes + kPage) + kSlotBytes; }
  bool contains(u64 address) const {
    const u64 start = reinterpret_cast<u64>(memory);
    return memory != nullptr && address >= start && address < start + kMaxClusterBlocks * (kSlotBytes + kPage);
  }
};

// -- global memory: arrays appear at addresses the Python side chose, with nothing mapped between them
constexpr u64 kWindowStart = 1ull << 37;
constexpr u64 kWindowBytes = 1ull << 36;

struct Window {
  bool prepare() const {
    return reserve(kWindowBytes, PROT_NONE, reinterpret_cast<char*>(kWindowStart)) != nullptr;
  }
  bool show(const Request& request, int file) const {
    for (u32 index = 0; index < request.region_count; ++index) {
      const Region& region = request.regions[index];
      const int protection = region.writable ? PROT_READ | PROT_WRITE : PROT_READ;
      void* address = reinterpret_cast<void*>(region.address);
      if (mmap(address, region.bytes, protection, MAP_SHARED | MAP_FIXED, file, static_cast<off_t>(region.file_offset)) ==
          MAP_FAILED)
        return false;
    }
    return true;
  }
  void hide(const Request& request) const {
    for (u32 index = 0; index < request.region_count; ++index) {
      const Region& region = request.regions[index];
      mmap(reinterpret_cast<void*>(region.address), region.bytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    }
  }
  bool contains(u64 address) const { return address >= kWindowStart && address < kWindowStart + kWindowBytes; }
};
