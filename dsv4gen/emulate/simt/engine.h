// Runs the blocks of one launch: a fiber per thread, blocks of a cluster together, clusters one after the other.
//
// A thread runs alone until it votes, shuffles, waits at a barrier or ends. When all threads of a wave have come to
// such a point, the wave's votes and shuffles are answered. Per logical warp (32 lanes) they must be uniform: every
// thread of the warp at the same call. On wave 64 the two warps of a wave may be in different branches; they vote
// together when they are at the same call, as one instruction would, else the earlier call in the code is answered
// first and the other waits, as a structured program would reconverge.
#pragma once

#include <string.h>

#include "fiber.h"
#include "memory.h"
#include "transactions.h"

struct SimtThread {  // as in templates/device/simt
  u32 thread, block[3], grid[3], cluster_rank, cluster_size;
};

extern "C" {
extern const SimtThread* simt_self;
}

using Kernel = void (*)(const void* params);
using Site = u64;  // return address of the call: tells one call from another, and which is earlier in the code

constexpr u32 kWarp = 32;
constexpr u32 kMaxWave = 64;

enum State : u32 { kReady, kVote, kShuffle, kAtBlockBarrier, kAtClusterBarrier, kAtTransaction, kEnded };

struct Thread {
  SimtThread self;
  State state;
  u32 line;
  Site site;
  u64 value, answer;
  u32 source;
  Fiber fiber;
};

struct Block {
  u32 index[3];
  u32 ended;  // threads that have
  Thread* threads;
  SharedSlot shared;
  Inbox inbox;
};

Area area_of(u64 address);

class Engine {
 public:
  Engine(u32 wave, const Request& request, Report& report)
      : wave_(wave), request_(request), report_(report), random_(request.seed * 2 + 1) {}

  void run(Kernel kernel);

  // Called on a fiber: park the thread and give its answer once the engine has one.
  u64 park(State state, u64 value, u32 source, u32 line, Site site) {
    Thread& thread = *current_;
    thread.state = state;
    thread.value = value;
    thread.source = source;
    thread.line = line;
    thread.site = site;
    fiber_switch(thread.fiber, scheduler_);
    return thread.answer;
  }

  // Called on a fiber: give up the launch.
  void stop() {
    stopped_ = true;
    park(kEnded, 0, 0, current_->line, 0);
  }

  Block& block_of(u32 rank);
  Block& current_block() { return block_of(current_->self.cluster_rank); }
  u32 cluster_blocks() const { return cluster_blocks_; }
  const Thread* current() const { return current_; }
  void note_line(u32 line) { current_->line = line; }
  u64 shared_limit() const { return request_.shared_limit; }
  Counters& counters() { return report_.counters; }

  // Whether pushed words come at once: never, always, or by chance, as the order has it.
  bool comes_at_once() {
    return request_.order == kDescending || (request_.order == kRandom && next_random() % 2 != 0);
  }

  bool has_ended(const Block& block) const { return block.ended == threads_; }
  bool cluster_has_met() const { return cluster_has_met_; }

  // A new finding about `thread` (null: about no thread), or a spare one when the report is full.
  Finding& find(FindingKind kind, const Thread* thread, u32 line) {
    const u32 number = report_.finding_count;
    Finding& finding = number < kMaxFindings ? report_.findings[number] : spare_;
    if (number < kMaxFindings) ++report_.finding_count;
    memset(&finding, 0, sizeof finding);
    finding.kind = kind;
    if (thread != nullptr) {
      memcpy(finding.block, thread->self.block, sizeof finding.block);
      finding.thread = thread->self.thread;
    }
    finding.line = line;
    return finding;
  }

 private:
  struct Wave {
    Thread* threads;
    u32 count;
  };

  static void enter() {
    running_->kernel_(running_->request_.params);
    ++running_->current_block().ended;
    running_->park(kEnded, 0, 0, 0, 0);
  }

  u32 next_random() {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 17;
    return random_ ^= random_ << 5;
  }

  // Fill `order` with 0..count-1 in the launch's order.
  void arrange(u32* order, u32 count) {
    for (u32 index = 0; index < count; ++index) order[index] = request_.order == kDescending ? count - 1 - index : index;
    if (request_.order != kRandom) return;
    for (u32 last = count; last > 1; --last) {
      const u32 other = next_random() % last;
      const u32 kept = order[last - 1];
      order[last - 1] = order[other];
      order[other] = kept;
    }
  }

  u32 place_of(u32 number, u32 count) const;
  void start_cluster(const u32* cluster_index);
  void run_cluster();
  void run_waves();
  void resume(Thread& thread);
  bool step(const Wave& wave);
  bool wake(const Wave& wave);
  bool uniform(Thread* threads, u32 count, Thread** leader);
  void answer(Thread* wave, u32 wave_count, u32 begin, u32 end);
  bool release_barriers();
  bool same_barrier(const Block& block, const Thread** leader);
  void go_on(Block& block);
  void report_stuck(const Thread& thread);
  void check_pushes();
  void check_guards();

  const u32 wave_;  // lanes of the hardware wave
  const Request& request_;
  Report& report_;
  Finding spare_;
  Kernel kernel_ = nullptr;
  u32 random_, threads_ = 0, cluster_blocks_ = 0;
  bool stopped_ = false;
  bool cluster_has_met_ = false;  // at a cluster barrier: from then on all its blocks are known to have started
  Thread* current_ = nullptr;
  Fiber scheduler_;

  static Engine* running_;
};
