// The state of one wave, one lowered instruction (Op), and what all waves of a launch share (Launch).
// Python fills Op, Launch and their tables; emulate/amdgcn/layout.py mirrors the layouts and checks the sizes.
#pragma once
#include "base.h"

constexpr u32 kRowLanes = 64;  // lanes in one register row; wave32 uses the first 32

// Slots of the scalar file behind the hardware's own numbers (0..127).
enum Slot : u32 { kVcc = 106, kTtmp = 108, kM0 = 124, kExec = 126, kScc = 128, kShared = 152, kPrivate = 156, kSlots = 160 };

// Upper dwords of generic addresses that mean LDS and scratch (registers.py has the same).
constexpr u64 kSharedAperture = 0x00010000;
constexpr u64 kPrivateAperture = 0x00020000;

enum Stop : u32 { kRunning, kAtBarrier, kEnded, kTrapped, kPreempted };

enum TrapKind : u32 {
  kNoTrap,
  kOutOfBounds,
  kReadOnly,
  kLdsOutOfBounds,
  kScratchOutOfBounds,
  kBudget,
  kBadJump,
  kTrapInstruction,
  kUnsupportedDescriptor,
  kBadRegister,
  kRoundingMode,
};

enum FindingKind : u32 {
  kRaceReadAfterWrite,
  kRaceWriteAfterWrite,
  kRaceWriteAfterRead,
  kUninitialisedLds,
  kBarrierPlaces,
  kBarrierLanes,
  kBarrierEnded,
};

struct Wave;
struct Op;
using OpFunction = void (*)(Wave&, const Op&);

// One call of an instruction function. Operands are byte offsets: from the wave's state when not negative, from the
// end of the program's constants when negative.
struct Op {
  OpFunction function;
  u32 instruction;  // index of the program's instruction, for messages and counts
  u32 counted;      // 1 for the last op of an instruction
  i64 immediate;
  i64 immediate2;
  i32 d, m;        // results: a row or scalars; the mask of a carry
  i32 a, b, c, e;  // sources
  i32 x, y;        // the result's old value; what else an instruction needs
};

struct Buffer {
  u64 device;  // first address the kernel sees
  u64 bytes;
  u64 host;    // where the bytes really are
  u64 writable;
};

struct Shadow {  // of one LDS dword; bytes of `writers`/`readers`: wave + 1, bit 7 = atomic, 127 = several waves
  u32 epoch;
  u32 written;  // 1 in each byte that was written in this block
  u32 writers;
  u32 readers;
  u32 write_at[4];
  u32 read_at[4];
};

struct Finding {
  u32 kind, instruction, other_instruction, wave, other_wave, lane;
  u32 block[3];
  u32 count;
  u64 address;
};

struct Trap {
  u32 kind, instruction, wave, lane;
  u32 block[3];
  u32 bytes;
  u64 address;
};

struct MemoryCount {  // of one instruction
  u64 lines;          // cache lines touched
  u64 conflicts;      // extra LDS cycles by bank conflicts
  u64 lanes;          // lanes that took part
};

constexpr u32 kMaxFindings = 64;
constexpr u32 kMaxUser = 32;

struct Launch {
  const Op* ops;
  u64 first_op;
  u64* counts;                // executed, by instruction
  MemoryCount* memory_counts;  // by instruction
  const i32* entries;         // op index by (address - code_base) / 4, or -1
  u64 entry_count;
  u64 code_base;
  const Buffer* buffers;
  u64 buffer_count;
  u8* lds;
  Shadow* shadow;
  u8* scratch;      // per wave, then per lane
  char* constants;  // end of the constants
  u8* waves;
  u64 wave_stride;  // bytes between waves
  u64 poisoned_rows;
  u64 budget;
  u64 seed;
  u64 quantum;  // instructions before another wave gets its turn, 0 = run to the barrier
  u32 grid[3], block[3];
  u32 lanes, lds_bytes, scratch_bytes, wave_count;
  u32 order;  // 0 ascending, 1 descending, 2 seeded
  u32 user_count;
  u32 user[kMaxUser];
  i32 id_slot[3];  // scalar slots of the block's x, y, z, or -1
  i32 scratch_offset_slot;
  u32 ids_in_ttmp;
  u32 line_shift, banks, fp16_overflow, count_memory;
  u32 epoch, block_epoch;
  u32 block_id[3];
  u32 finding_count;
  Trap trap;
  Finding findings[kMaxFindings];
};

struct Wave {
  char* bases[2];  // of operands: this wave, the end of the constants
  Launch* launch;
  const Op* next;
  const Buffer* last;  // buffer of the previous global access
  const Op* barrier;
  u64 full_exec;
  u64 saved_exec;
  u32 stop, id, lanes, end_instruction, fp16_overflow;
  alignas(128) u32 s[kSlots];
  alignas(64) u32 mask[kRowLanes];  // EXEC, one dword a lane: 0 or ~0
  alignas(64) u32 rows[1];          // vector registers, accumulators, temporaries; more follow
};

ALWAYS_INLINE u32* dwords(Wave& w, i32 operand) {
  return reinterpret_cast<u32*>(w.bases[static_cast<u32>(operand) >> 31] + operand);
}

ALWAYS_INLINE u64 exec_of(const Wave& w) { return w.s[kExec] | static_cast<u64>(w.s[kExec + 1]) << 32; }

ALWAYS_INLINE void trap(Wave& w, const Op& o, TrapKind kind, u32 lane, u64 address, u32 bytes) {
  Launch& launch = *w.launch;
  launch.trap = {kind, o.instruction, w.id, lane, {launch.block_id[0], launch.block_id[1], launch.block_id[2]}, bytes, address};
  w.stop = kTrapped;
}

inline __attribute__((noinline)) void report(Launch& launch, FindingKind kind, u32 instruction, u32 other, u32 wave, u32 other_wave,
                            u32 lane, u64 address) {
  for (u32 i = 0; i < launch.finding_count; ++i) {
    Finding& known = launch.findings[i];
    if (known.kind == kind && known.instruction == instruction && known.other_instruction == other) {
      ++known.count;
      return;
    }
  }
  if (launch.finding_count == kMaxFindings) return;
  launch.findings[launch.finding_count++] = {kind, instruction, other, wave, other_wave, lane,
                                             {launch.block_id[0], launch.block_id[1], launch.block_id[2]}, 1, address};
}

// Calls `body(lane)` for every active lane while the wave runs.
template <class F> ALWAYS_INLINE void each_active_lane(Wave& w, F body) {
  for (u64 left = exec_of(w); left && w.stop == kRunning; left &= left - 1) body(static_cast<u32>(__builtin_ctzll(left)));
}
