#include "engine.h"

extern "C" {
const SimtThread* simt_self = nullptr;
}

Engine* Engine::running_ = nullptr;

namespace {

Stacks stacks;
SharedArea shared_area;
Thread thread_table[kMaxThreads];
Block block_table[kMaxClusterBlocks];
u32 wave_order[kMaxThreads];

bool is_collective(const Thread& thread) { return thread.state == kVote || thread.state == kShuffle; }
bool is_barrier(const Thread& thread) {
  return thread.state == kAtBlockBarrier || thread.state == kAtClusterBarrier;
}

// A thread that waits for words keeps its barrier's offset and the phase that is to end.
TransactionBarrier& barrier_of(Block& block, const Thread& thread) {
  return *block.inbox.at(static_cast<u32>(thread.value));
}
bool phase_ended(Block& block, const Thread& thread) { return (barrier_of(block, thread).phase & 1) != thread.source; }

const Thread* at_transaction(const Thread* threads, u32 count) {
  for (u32 index = 0; index < count; ++index)
    if (threads[index].state == kAtTransaction) return &threads[index];
  return nullptr;
}
bool can_go_on(Block& block, u32 threads) {
  for (u32 index = 0; index < threads; ++index) {
    const Thread& thread = block.threads[index];
    if (thread.state != kAtTransaction) continue;
    if (phase_ended(block, thread) || block.inbox.can_end(barrier_of(block, thread))) return true;
  }
  return false;
}

u32 common_factor(u32 one, u32 other) { return other == 0 ? one : common_factor(other, one % other); }
u32 ceil_divide(u32 value, u32 by) { return (value + by - 1) / by; }

}  // namespace

Area area_of(u64 address) {
  if (shared_area.contains(address)) return kSharedMemory;
  if (stacks.contains(address)) return kStack;
  return Window().contains(address) ? kGlobalMemory : kElsewhere;
}

Block& Engine::block_of(u32 rank) { return block_table[rank]; }

void Engine::run(Kernel kernel) {
  kernel_ = kernel;
  running_ = this;
  threads_ = request_.block[0];
  cluster_blocks_ = request_.cluster[0] * request_.cluster[1] * request_.cluster[2];
  if (!shared_area.prepare() || !stacks.prepare(threads_ * cluster_blocks_)) {
    find(kNoMemory, nullptr, 0);
    return;
  }
  u32 clusters[3];
  for (u32 axis = 0; axis < 3; ++axis) clusters[axis] = request_.grid[axis] / request_.cluster[axis];
  const u32 count = clusters[0] * clusters[1] * clusters[2];
  for (u32 number = 0; number < count && !stopped_; ++number) {
    const u32 place = place_of(number, count);
    const u32 index[3] = {place % clusters[0], place / clusters[0] % clusters[1], place / clusters[0] / clusters[1]};
    start_cluster(index);
    run_cluster();
  }
}

// Which of `count` clusters runs as the given number. The random order is a walk with a stride that has no common
// factor with `count`, so it needs no table.
u32 Engine::place_of(u32 number, u32 count) const {
  if (request_.order == kAscending) return number;
  if (request_.order == kDescending) return count - 1 - number;
  const u64 seed = request_.seed * 0x9E3779B97F4A7C15ull + 0x632BE59BD9B4E019ull;
  u32 stride = static_cast<u32>(seed >> 40) % count;
  while (common_factor(stride, count) != 1) stride = (stride + 1) % count;
  return static_cast<u32>((static_cast<u64>(stride) * number + (seed >> 16)) % count);
}

void Engine::start_cluster(const u32* cluster_index) {
  const u32* shape = request_.cluster;
  for (u32 rank = 0; rank < cluster_blocks_; ++rank) {
    Block& block = block_table[rank];
    const u32 inside[3] = {rank % shape[0], rank / shape[0] % shape[1], rank / shape[0] / shape[1]};
    for (u32 axis = 0; axis < 3; ++axis) block.index[axis] = cluster_index[axis] * shape[axis] + inside[axis];
    block.threads = thread_table + rank * threads_;
    block.shared = SharedSlot{shared_area.end(rank)};
    block.ended = 0;
    block.inbox.clear();
    for (u32 index = 0; index < threads_; ++index) {
      Thread& thread = block.threads[index];
      const u32 slot = rank * threads_ + index;
      thread.self.thread = index;
      memcpy(thread.self.block, block.index, sizeof block.index);
      memcpy(thread.self.grid, request_.grid, sizeof request_.grid);
      thread.self.cluster_rank = rank;
      thread.self.cluster_size = cluster_blocks_;
      thread.state = kReady;
      thread.line = 0;
      fiber_start(thread.fiber, stacks.low(slot), stacks.bytes(slot), enter);
    }
  }
  cluster_has_met_ = false;
  counters().blocks += cluster_blocks_;
}

void Engine::run_cluster() {
  do {
    run_waves();
  } while (!stopped_ && release_barriers());
  check_guards();
  if (!stopped_) check_pushes();
}

// Run every wave of the cluster until its threads wait at barriers or have ended. In random order the waves take
// turns after each collective; in the other two each goes as far as it can, the extremes between which they lie.
void Engine::run_waves() {
  const u32 per_block = ceil_divide(threads_, wave_);
  u32 open = per_block * cluster_blocks_;
  arrange(wave_order, open);
  while (open > 0) {
    const u32 pick = request_.order == kRandom ? next_random() % open : 0;
    const u32 rank = wave_order[pick] / per_block, first = wave_order[pick] % per_block * wave_;
    const u32 rest = threads_ - first;
    const Wave wave{block_table[rank].threads + first, rest < wave_ ? rest : wave_};
    const bool more = step(wave);
    if (stopped_) return;
    if (more) continue;
    --open;
    if (request_.order == kRandom) {
      wave_order[pick] = wave_order[open];
    } else {
      memmove(wave_order, wave_order + 1, open * sizeof *wave_order);
    }
  }
}

void Engine::resume(Thread& thread) {
  current_ = &thread;
  simt_self = &thread.self;
  ++counters().switches;
  fiber_switch(scheduler_, thread.fiber);
}

// Run the wave's ready threads to their next stop and answer one collective; false when nothing is left to do.
bool Engine::step(const Wave& wave) {
  u32 order[kMaxWave];
  arrange(order, wave.count);
  do {
    for (u32 index = 0; index < wave.count; ++index) {
      Thread& thread = wave.threads[order[index]];
      if (thread.state == kReady) resume(thread);
      if (stopped_) return false;
    }
  } while (wake(wave));
  Thread* leaders[kMaxWave / kWarp] = {};
  const u32 warps = ceil_divide(wave.count, kWarp);
  for (u32 warp = 0; warp < warps; ++warp) {
    const u32 first = warp * kWarp, rest = wave.count - first;
    if (at_transaction(wave.threads + first, rest < kWarp ? rest : kWarp) != nullptr) continue;  // its others wait as well
    if (!uniform(wave.threads + first, rest < kWarp ? rest : kWarp, &leaders[warp])) return false;
  }
  if (leaders[0] == nullptr && leaders[1] == nullptr) return false;
  ++counters().collectives;
  const bool both = leaders[0] != nullptr && leaders[1] != nullptr;
  if (both && leaders[0]->site == leaders[1]->site) {
    answer(wave.threads, wave.count, 0, wave.count);
  } else {
    const bool second = leaders[0] == nullptr || (both && leaders[1]->site < leaders[0]->site);
    const u32 begin = second ? kWarp : 0;
    answer(wave.threads, wave.count, begin, begin + kWarp < wave.count ? begin + kWarp : wave.count);
  }
  return true;
}

// Make ready the wave's threads that waited for words which have come while others ran; whether there were any.
bool Engine::wake(const Wave& wave) {
  bool any = false;
  for (u32 index = 0; index < wave.count; ++index) {
    Thread& thread = wave.threads[index];
    if (thread.state != kAtTransaction || !phase_ended(block_table[thread.self.cluster_rank], thread)) continue;
    thread.state = kReady;
    any = true;
  }
  return any;
}

// Whether all threads of a logical warp are at one collective, or none is at any. `leader` is one that is.
bool Engine::uniform(Thread* threads, u32 count, Thread** leader) {
  for (u32 index = 0; index < count && *leader == nullptr; ++index)
    if (is_collective(threads[index])) *leader = &threads[index];
  if (*leader == nullptr) return true;
  for (u32 index = 0; index < count; ++index) {
    const Thread& other = threads[index];
    if (is_collective(other) && other.site == (*leader)->site) continue;
    Finding& finding = find(kDivergentCollective, *leader, (*leader)->line);
    finding.other_thread = other.self.thread;
    finding.other_line = other.line;
    finding.detail = other.state;
    stopped_ = true;
    return false;
  }
  return true;
}

// Answer the collective at which lanes [begin, end) of a wave wait; these are the lanes that are active in it.
void Engine::answer(Thread* wave, u32 wave_count, u32 begin, u32 end) {
  u64 ballot = 0;
  for (u32 lane = begin; lane < end; ++lane) ballot |= static_cast<u64>(wave[lane].value != 0) << lane;
  for (u32 lane = begin; lane < end; ++lane) {
    Thread& thread = wave[lane];
    if (thread.state == kVote) {
      thread.answer = ballot;
    } else if (thread.source >= begin && thread.source < end && thread.source < wave_count) {
      thread.answer = wave[thread.source].value;
    } else {
      find(kInactiveSource, &thread, thread.line).detail = thread.source;
      thread.answer = 0xDEADBEEF;
    }
  }
  for (u32 lane = begin; lane < end; ++lane) wave[lane].state = kReady;
}

// Let through the barriers at which every thread waits; false when all threads have ended or cannot go on. Of the blocks
// of a cluster that wait at barriers of their own, or for words that are on their way, one goes on: the others stay as far
// behind as the order has it, until all meet.
bool Engine::release_barriers() {
  u32 at_cluster_barrier = 0, at_own = 0;
  u32 waiting[kMaxClusterBlocks];
  const Thread *cluster_leader = nullptr, *ended = nullptr, *stuck = nullptr;
  for (u32 rank = 0; rank < cluster_blocks_; ++rank) {
    Block& block = block_table[rank];
    if (const Thread* thread = at_transaction(block.threads, threads_)) {
      if (can_go_on(block, threads_)) waiting[at_own++] = rank;
      stuck = thread;
      continue;
    }
    const Thread* leader = nullptr;
    if (!same_barrier(block, &leader)) return false;
    if (leader == nullptr) {
      ended = &block.threads[0];
    } else if (leader->state == kAtClusterBarrier) {
      cluster_leader = leader;
      ++at_cluster_barrier;
    } else {
      waiting[at_own++] = rank;
    }
  }
  if (at_own != 0) {
    const u32 last = at_own - 1;
    const u32 pick = request_.order == kRandom ? next_random() % at_own : request_.order == kDescending ? last : 0;
    go_on(block_table[waiting[pick]]);
    return true;
  }
  if (stuck != nullptr) report_stuck(*stuck);
  if (stuck != nullptr || at_cluster_barrier == 0) return false;
  if (ended != nullptr) {
    find(kMissedClusterBarrier, cluster_leader, cluster_leader->line).detail = ended->self.cluster_rank;
    stopped_ = true;
    return false;
  }
  for (u32 index = 0; index < threads_ * cluster_blocks_; ++index) thread_table[index].state = kReady;
  ++counters().cluster_barriers;
  cluster_has_met_ = true;
  return true;
}

// Let a block go on that waits for words, which come now, or at a barrier of its own.
void Engine::go_on(Block& block) {
  const bool words = at_transaction(block.threads, threads_) != nullptr;
  if (!words) ++counters().block_barriers;
  for (u32 index = 0; index < threads_; ++index) {
    Thread& thread = block.threads[index];
    if (words && thread.state != kAtTransaction) continue;
    if (words && !phase_ended(block, thread)) {
      TransactionBarrier& barrier = barrier_of(block, thread);
      if (!block.inbox.can_end(barrier)) continue;
      block.inbox.deliver(barrier, block.shared.base);
    }
    thread.state = kReady;
  }
}

void Engine::report_stuck(const Thread& thread) {
  Block& block = block_table[thread.self.cluster_rank];
  const TransactionBarrier& barrier = barrier_of(block, thread);
  Finding& finding = find(barrier.expected ? kStuckTransaction : kNothingExpected, &thread, thread.line);
  finding.detail = static_cast<u64>(block.inbox.missing(barrier));
  stopped_ = true;
}

// What is on its way to a block that has ended would land in another block's memory.
void Engine::check_pushes() {
  for (u32 rank = 0; rank < cluster_blocks_; ++rank)
    if (!block_table[rank].inbox.is_empty()) find(kUnreadPush, &block_table[rank].threads[0], 0).detail = rank;
}

// Whether all threads of the block wait at one barrier (`leader` is one of them) or all have ended.
bool Engine::same_barrier(const Block& block, const Thread** leader) {
  for (u32 index = 0; index < threads_ && *leader == nullptr; ++index)
    if (is_barrier(block.threads[index])) *leader = &block.threads[index];
  if (*leader == nullptr) return true;
  for (u32 index = 0; index < threads_; ++index) {
    const Thread& other = block.threads[index];
    if (other.state == (*leader)->state && other.site == (*leader)->site) continue;
    Finding& finding = find(other.state == kEnded ? kMissedBarrier : kDivergentBarrier, *leader, (*leader)->line);
    finding.other_thread = other.self.thread;
    finding.other_line = other.line;
    finding.detail = other.state;
    stopped_ = true;
    return false;
  }
  return true;
}

void Engine::check_guards() {
  for (u32 rank = 0; rank < cluster_blocks_; ++rank) {
    const SharedSlot& shared = block_table[rank].shared;
    const i64 offset = shared.base == nullptr ? 0 : shared.overwritten();
    if (offset == 0) continue;
    Finding& finding = find(kSharedGuard, &block_table[rank].threads[0], 0);
    finding.detail = static_cast<u64>(offset);
    finding.detail2 = shared.bytes;
  }
}
