// Runs the waves of every block: sets up registers, schedules waves from barrier to barrier in the chosen order,
// checks that a barrier is reached by whole waves at one place.
#include "values.h"

namespace {

constexpr u32 kPoison = 0xa5a5a5a5;
constexpr u32 kLdsPoison = 0xcd;

struct Random {
  u64 state;
  u32 below(u32 limit) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<u32>((state >> 33) % limit);
  }
};

Wave& wave_at(const Launch& launch, u32 index) {
  return *reinterpret_cast<Wave*>(launch.waves + launch.wave_stride * index);
}

void set_block_ids(const Launch& launch, Wave& w) {
  for (u32 axis = 0; axis < 3; ++axis)
    if (launch.id_slot[axis] >= 0) w.s[launch.id_slot[axis]] = launch.block_id[axis];
  if (launch.ids_in_ttmp) {
    w.s[kTtmp + 9] = launch.block_id[0];
    w.s[kTtmp + 8] = w.id << 25;
    w.s[kTtmp + 7] = (launch.block_id[1] & 0xffff) | launch.block_id[2] << 16;
  }
}

void set_aperture(u32* base_and_limit, u64 high) {
  write_u64(base_and_limit, high << 32);
  write_u64(base_and_limit + 2, high << 32 | 0xffffffff);
}

void set_lanes(const Launch& launch, Wave& w, u32 threads) {
  u64 exec = 0;
  for (u32 lane = 0; lane < w.lanes; ++lane) {
    const u32 thread = w.id * w.lanes + lane;
    if (thread >= threads) break;
    exec |= 1ull << lane;
    const u32 x = thread % launch.block[0], y = thread / launch.block[0] % launch.block[1],
              z = thread / (launch.block[0] * launch.block[1]);
    w.rows[lane] = x | y << 10 | z << 20;
  }
  w.full_exec = exec;
  w.s[kExec] = static_cast<u32>(exec);
  w.s[kExec + 1] = static_cast<u32>(exec >> 32);
  refresh_mask(w);
}

void start_wave(Launch& launch, u32 index, u32 threads) {
  Wave& w = wave_at(launch, index);
  w.bases[0] = reinterpret_cast<char*>(&w);
  w.bases[1] = launch.constants;
  w.launch = &launch;
  w.next = launch.ops + launch.first_op;
  w.last = launch.buffers;
  w.barrier = nullptr;
  w.stop = kRunning;
  w.id = index;
  w.lanes = launch.lanes;
  w.fp16_overflow = launch.fp16_overflow;
  for (u32 slot = 0; slot < kTtmp; ++slot) w.s[slot] = kPoison;
  for (u32 slot = 0; slot < launch.user_count; ++slot) w.s[slot] = launch.user[slot];
  w.s[kVcc] = w.s[kVcc + 1] = w.s[kScc] = 0;
  set_aperture(&w.s[kShared], kSharedAperture);
  set_aperture(&w.s[kPrivate], kPrivateAperture);
  u32* rows = w.rows;
  for (u64 i = 0; i < launch.poisoned_rows * kRowLanes; ++i) rows[i] = kPoison;
  if (launch.scratch_offset_slot >= 0) w.s[launch.scratch_offset_slot] = 0;
  set_block_ids(launch, w);
  set_lanes(launch, w, threads);
}

void run_wave(Launch& launch, Wave& w) {
  if (launch.budget == 0) return trap(w, *w.next, kBudget, 0, 0, 0);
  w.stop = kRunning;
  u64 turn = launch.quantum ? launch.quantum : ~0ull;
  if (launch.budget < turn) turn = launch.budget;
  const u64 given = turn;
  u64* counts = launch.counts;
  while (w.stop == kRunning) {
    const Op& op = *w.next++;
    counts[op.instruction] += op.counted;
    turn -= op.counted;
    op.function(w, op);
    if (turn == 0 && op.counted && w.stop == kRunning) {
      w.stop = kPreempted;
      if (given == launch.budget) trap(w, op, kBudget, 0, 0, 0);
    }
  }
  launch.budget -= given - turn;
}

void order_waves(const Launch& launch, Random& random, u32* waves) {
  const u32 count = launch.wave_count;
  for (u32 i = 0; i < count; ++i) waves[i] = launch.order == 1 ? count - 1 - i : i;
  if (launch.order != 2) return;
  for (u32 i = count - 1; i > 0; --i) {
    const u32 j = random.below(i + 1), held = waves[i];
    waves[i] = waves[j];
    waves[j] = held;
  }
}

// All waves wait or have ended: was it one barrier, reached by every lane and every wave?
void check_barrier(Launch& launch) {
  const Wave* first = nullptr;
  const Wave* ended = nullptr;
  for (u32 i = 0; i < launch.wave_count; ++i) {
    const Wave& w = wave_at(launch, i);
    if (w.stop == kEnded) {
      if (!ended) ended = &w;
      continue;
    }
    if (exec_of(w) != w.full_exec) {
      const u64 missing = w.full_exec & ~exec_of(w);
      report(launch, kBarrierLanes, w.barrier->instruction, 0, w.id, 0, missing ? __builtin_ctzll(missing) : 0, missing);
    }
    if (!first) first = &w;
    if (w.barrier->instruction != first->barrier->instruction)
      report(launch, kBarrierPlaces, w.barrier->instruction, first->barrier->instruction, w.id, first->id, 0, 0);
  }
  if (first && ended)
    report(launch, kBarrierEnded, first->barrier->instruction, ended->end_instruction, first->id, ended->id, 0, 0);
}

u64 coprime_step(Random& random, u64 count) {
  for (;;) {
    const u64 step = 1 + random.below(static_cast<u32>(count));
    u64 a = step, b = count;
    while (b) {
      const u64 rest = a % b;
      a = b;
      b = rest;
    }
    if (a == 1) return step;
  }
}

// Runs one block; false when a wave trapped.
bool run_block(Launch& launch, Random& random) {
  const u32 threads = launch.block[0] * launch.block[1] * launch.block[2];
  launch.block_epoch = ++launch.epoch;
  for (u32 i = 0; i < launch.lds_bytes; ++i) launch.lds[i] = kLdsPoison;
  for (u32 i = 0; i < launch.wave_count; ++i) start_wave(launch, i, threads);
  u32 order[64];
  for (;;) {
    order_waves(launch, random, order);
    bool preempted = false, waiting = false;
    for (u32 i = 0; i < launch.wave_count; ++i) {
      Wave& w = wave_at(launch, order[i]);
      if (w.stop == kRunning || w.stop == kPreempted) run_wave(launch, w);
      if (w.stop == kTrapped) return false;
      preempted = preempted || w.stop == kPreempted;
      waiting = waiting || w.stop == kAtBarrier;
    }
    if (preempted) continue;
    if (!waiting) return true;
    check_barrier(launch);
    ++launch.epoch;
    for (u32 i = 0; i < launch.wave_count; ++i)
      if (wave_at(launch, i).stop == kAtBarrier) wave_at(launch, i).stop = kRunning;
  }
}

}  // namespace

extern "C" {

// Sizes that the Python side checks against its own description of the structures.
extern const u64 emulator_layout[];
const u64 emulator_layout[] = {sizeof(Op),      sizeof(Launch),          sizeof(Shadow),         sizeof(Buffer),
                               sizeof(Finding), __builtin_offsetof(Wave, s), __builtin_offsetof(Wave, rows), kSlots};

// Runs all blocks; returns 0, or 1 when a wave trapped. The seeded order visits block (start + i * step) mod count.
int emulator_run(Launch* launch) {
  Random random = {launch->seed * 2654435761u + 1};
  const u64 blocks = static_cast<u64>(launch->grid[0]) * launch->grid[1] * launch->grid[2];
  u64 start = 0, step = 1;
  if (launch->order == 1) {
    start = blocks - 1;
    step = blocks - 1;
  } else if (launch->order == 2) {
    start = random.below(static_cast<u32>(blocks));
    step = coprime_step(random, blocks);
  }
  for (u64 i = 0; i < blocks; ++i) {
    const u64 block = (start + i * step) % blocks;
    launch->block_id[0] = static_cast<u32>(block % launch->grid[0]);
    launch->block_id[1] = static_cast<u32>(block / launch->grid[0] % launch->grid[1]);
    launch->block_id[2] = static_cast<u32>(block / launch->grid[0] / launch->grid[1]);
    if (!run_block(*launch, random)) return 1;
  }
  return 0;
}
}
