// Words that the blocks of a cluster push into each other's shared memory, and the barriers that count them.
//
// A phase of a barrier ends when its block has said how many bytes it expects, and these have come. Words may come at
// once, or only when the block can do nothing but wait for them: a kernel that reads earlier, or relies on another
// barrier, reads what was there before.
#pragma once

#include <string.h>

#include "protocol.h"

struct TransactionBarrier {
  u32 offset;     // in the shared struct
  bool expected;  // in this phase
  i64 due;        // bytes still to come; below zero where some came before they were expected
  u32 phase;
};

struct Push {
  u32 barrier, offset, bytes;  // offsets in the shared struct
  u8 words[16];
};

constexpr u32 kMaxTransactionBarriers = 64;
constexpr u32 kMaxPushes = 1 << 14;  // on their way to one block

class Inbox {
 public:
  void clear() { barrier_count_ = push_count_ = 0; }
  // False when the block has no room for another barrier.
  bool init(u32 offset) {
    TransactionBarrier* known = at(offset);
    if (known == nullptr && barrier_count_ == kMaxTransactionBarriers) return false;
    if (known == nullptr) known = &barriers_[barrier_count_++];
    *known = {offset, false, 0, 0};
    return true;
  }
  TransactionBarrier* at(u32 offset) {
    for (u32 index = 0; index < barrier_count_; ++index)
      if (barriers_[index].offset == offset) return &barriers_[index];
    return nullptr;
  }
  bool is_empty() const { return push_count_ == 0; }
  bool is_full() const { return push_count_ == kMaxPushes; }
  void post(const Push& push) { pushes_[push_count_++] = push; }

  static void expect(TransactionBarrier& barrier, u32 bytes) {
    barrier.expected = true;
    barrier.due += bytes;
    end_phase(barrier);
  }

  // Whether the phase would end if all came that is on its way.
  bool can_end(const TransactionBarrier& barrier) const {
    i64 due = barrier.due;
    for (u32 index = 0; index < push_count_ && due > 0; ++index)
      if (pushes_[index].barrier == barrier.offset) due -= pushes_[index].bytes;
    return barrier.expected && due == 0;
  }

  // Bytes that are neither there nor on their way.
  i64 missing(const TransactionBarrier& barrier) const {
    i64 due = barrier.due;
    for (u32 index = 0; index < push_count_; ++index)
      if (pushes_[index].barrier == barrier.offset) due -= pushes_[index].bytes;
    return due;
  }

  // Lets words come to `base` in the order in which they were pushed, until the phase has ended.
  void deliver(TransactionBarrier& barrier, char* base) {
    const u32 phase = barrier.phase;
    u32 kept = 0;
    for (u32 index = 0; index < push_count_; ++index) {
      const Push push = pushes_[index];
      if (push.barrier == barrier.offset && barrier.phase == phase) {
        memcpy(base + push.offset, push.words, push.bytes);
        barrier.due -= push.bytes;
        end_phase(barrier);
      } else {
        pushes_[kept++] = push;
      }
    }
    push_count_ = kept;
  }

 private:
  static void end_phase(TransactionBarrier& barrier) {
    if (!barrier.expected || barrier.due != 0) return;
    barrier.expected = false;
    ++barrier.phase;
  }

  u32 barrier_count_ = 0, push_count_ = 0;
  TransactionBarrier barriers_[kMaxTransactionBarriers];
  Push pushes_[kMaxPushes];
};
