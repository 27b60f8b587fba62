// What the worker and its Python side (protocol.py) share: one request and one report at the start of a memory file.
// The sizes are compared when a worker starts, so that the two descriptions cannot drift apart.
#pragma once

using u8 = unsigned char;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

enum Order : u32 { kAscending, kDescending, kRandom };

// Beside kind, block, thread and line a finding holds what its kind says; `other` is another thread, `state` its State.
enum FindingKind : u32 {
  kSignal = 1,            // detail: signal, detail2: address, other_thread: Area, other_line: 1 for a write
  kUnknownSymbol,
  kDivergentCollective,   // other_thread, other_line, detail: state
  kInactiveSource,        // detail: lane of the wave
  kDivergentBarrier,      // other_thread, other_line, detail: state
  kMissedBarrier,         // other_thread
  kMissedClusterBarrier,  // detail: rank of the block that has ended
  kSharedLimit,           // detail: bytes wanted, detail2: limit
  kSharedTwice,           // detail: bytes wanted, detail2: bytes of the first struct
  kSharedGuard,           // detail: offset from the struct's start (signed), detail2: its bytes
  kMisaligned,            // detail: address, detail2: alignment
  kRemoteRank,            // detail: rank, detail2: blocks in the cluster
  kRemoteAddress,         // detail: offset from the struct's start (signed), detail2: its bytes
  kRemoteEarly,           // detail: rank
  kRemoteEnded,           // detail: rank of the block that has ended
  kUnknownTransaction,    // detail: offset of a word that is no barrier (signed), detail2: bytes of the shared struct
  kExpectedTwice,         // detail: bytes still to come
  kStuckTransaction,      // detail: bytes that do not come (signed)
  kNothingExpected,
  kUnreadPush,            // detail: rank of the block that has ended
  kNoMemory,              // the worker's, not the kernel's: memory could not be mapped
};

enum Area : u32 { kElsewhere, kGlobalMemory, kSharedMemory, kStack };

struct Region {
  u64 address, file_offset, bytes;
  u32 writable, unused;
};

constexpr u32 kMaxRegions = 128;
constexpr u32 kMaxFindings = 32;
constexpr u32 kMaxParams = 4096;

struct Request {
  char symbol[256];
  u32 grid[3], block[3], cluster[3];
  u32 order, seed, region_count;
  u64 shared_limit;
  u8 params[kMaxParams];
  Region regions[kMaxRegions];
};

struct Finding {
  u32 kind, block[3], thread, line, other_thread, other_line;
  u64 detail, detail2;
};

struct Counters {
  u64 blocks, switches, collectives, block_barriers, cluster_barriers, shared_bytes;
};

struct Report {
  u32 finding_count, unused;
  Counters counters;
  Finding findings[kMaxFindings];
};

struct Control {
  Request request;
  Report report;
};
