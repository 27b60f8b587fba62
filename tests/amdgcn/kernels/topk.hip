// Radix top-k of one row per block: a 12-bit histogram of ordered keys, a block scan to find the threshold's bin,
// a ballot append of what lies above it, two 10-bit rounds over the bin's candidates, ties filled last.
// The macros BUG_* plant one mistake each.
#include "device.h"

constexpr u32 kThreads = 1024, kWarp = 32, kWarps = kThreads / kWarp, kBins = 4096, kCandidates = 4096;

struct Shared {
  u32 histogram[kBins];
  u32 warp_sums[kWarps];
  u32 threshold, above, written, candidates;
  u32 keys[kCandidates];
  i32 indices[kCandidates];
};

DEVICE u32 ordered_key(float x) {  // larger float, larger key
  const u32 bits = float_bits(x);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
DEVICE u32 warp_lane() { return thread_id() % kWarp; }

DEVICE u32 warp_scan(u32 value) {  // inclusive sum
  for (u32 distance = 1; distance < kWarp; distance *= 2) {
#ifdef BUG_SHUFFLE_WIDTH
    const u32 other = shuffle_up(value, distance, WAVE);
    if (lane_id() >= distance) value += other;
#else
    const u32 other = shuffle_up(value, distance, kWarp);
    if (warp_lane() >= distance) value += other;
#endif
  }
  return value;
}

DEVICE u64 warp_half() { return 0xffffffffull << (lane_id() / kWarp * kWarp); }

DEVICE u32 warp_count(bool p) {
#ifdef BUG_BALLOT_POPCOUNT
  return popcount(static_cast<u32>(wave_ballot(p)));
#else
  return popcount(wave_ballot(p) & warp_half());
#endif
}

DEVICE u32 warp_rank(bool p) {  // how many lower lanes of the warp have p set
#ifdef BUG_LANE_MASK
  return popcount(wave_ballot(p) & ((1u << lane_id()) - 1u));
#else
  return popcount(wave_ballot(p) & ((1ull << lane_id()) - 1ull) & warp_half());
#endif
}

// Finds, from the top, the bin where the running count reaches `need`.
DEVICE void find_bin(Shared& s, u32 bins, u32 need) {
  const u32 t = thread_id(), each = bins / kThreads ? bins / kThreads : 1;
  const bool active = t * each < bins;
  u32 count = 0;
  if (active)
    for (u32 i = 0; i < each; ++i) count += s.histogram[bins - 1 - (t * each + i)];
  const u32 inclusive = warp_scan(count);
  if (warp_lane() == kWarp - 1) s.warp_sums[t / kWarp] = inclusive;
  block_barrier();
  u32 base = 0;
  for (u32 w = 0; w < t / kWarp; ++w) base += s.warp_sums[w];
  const u32 last = base + inclusive, first = last - count;
  if (active && first < need && need <= last) {
    u32 seen = first;
    for (u32 i = 0; i < each; ++i) {
      const u32 bin = bins - 1 - (t * each + i), size = s.histogram[bin];
      if (seen < need && need <= seen + size) {
        s.threshold = bin;
        s.above = seen;
      }
      seen += size;
    }
  }
  block_barrier();
}

KERNEL(1024) topk(i32* out, const float* in, i32 n, i32 k) {
  SHARED Shared s;
  const u32 t = thread_id();
  const float* row = in + static_cast<u64>(block_id()) * n;
  i32* result = out + static_cast<u64>(block_id()) * k;
  for (u32 i = t; i < kBins; i += kThreads) s.histogram[i] = 0;
  if (t == 0) s.written = s.candidates = 0;
#ifndef BUG_NO_BARRIER
  block_barrier();
#endif
  for (i32 i = t; i < n; i += kThreads) shared_add(&s.histogram[ordered_key(row[i]) >> 20], 1);
  block_barrier();
  find_bin(s, kBins, k);
  u32 threshold = s.threshold, need = k - s.above;
  const i32 rounded = (n + kThreads - 1) / kThreads * kThreads;
  for (i32 i = t; i < rounded; i += kThreads) {
    const u32 key = i < n ? ordered_key(row[i]) : 0;
    const bool greater = i < n && key >> 20 > threshold, equal = i < n && key >> 20 == threshold;
    const u32 count = warp_count(greater), rank = warp_rank(greater);
    u32 base = 0;
    if (warp_lane() == 0 && count) base = shared_add(&s.written, count);
    base = shuffle(base, 0, kWarp);
    if (greater) result[base + rank] = i;
    if (equal) {
      const u32 place = shared_add(&s.candidates, 1);
      if (place < kCandidates) {
        s.keys[place] = key;
        s.indices[place] = i;
      }
    }
  }
  block_barrier();
  const u32 candidates = s.candidates < kCandidates ? s.candidates : kCandidates;
  threshold <<= 20;
  for (u32 round = 0; round < 2; ++round) {
    const u32 shift = round ? 0 : 10, known = round ? 0xfffffc00u : 0xfff00000u;
    for (u32 i = t; i < 1024; i += kThreads) s.histogram[i] = 0;
    block_barrier();
    for (u32 i = t; i < candidates; i += kThreads)
      if ((s.keys[i] & known) == threshold) shared_add(&s.histogram[s.keys[i] >> shift & 1023], 1);
    block_barrier();
    find_bin(s, 1024, need);
    const u32 bin = s.threshold;
    need -= s.above;
    for (u32 i = t; i < candidates; i += kThreads)
      if ((s.keys[i] & known) == threshold && (s.keys[i] >> shift & 1023) > bin)
        result[shared_add(&s.written, 1)] = s.indices[i];
    block_barrier();
    threshold |= bin << shift;
  }
  for (u32 i = t; i < candidates; i += kThreads)
    if (s.keys[i] == threshold) {
      const u32 place = shared_add(&s.written, 1);
      if (place < static_cast<u32>(k)) result[place] = s.indices[i];
    }
}
