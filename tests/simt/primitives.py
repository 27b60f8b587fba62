"""Kernels that do one thing with each primitive; they compile in every dialect."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float32]

PRIMITIVES = """
struct Shared {
  u32 count;
  u32 values[256];
};

DSV4_KERNEL(256, 1) void ballots(DSV4_PARAMS(Params, params)) {
  const u32 thread = thread_id();
  const bool predicate = params.input[thread] > 0.0f;
  const u32 mask = warp_ballot(predicate);
  const u64 wave = wave_ballot(predicate);
  params.out[thread * 4] = mask;
  params.out[thread * 4 + 1] = popcount(mask & lanes_below_mask());
  params.out[thread * 4 + 2] = static_cast<u32>(wave);
  params.out[thread * 4 + 3] = popcount(wave);
}

DSV4_KERNEL(256, 1) void scan_ones(DSV4_PARAMS(Params, params)) { params.out[thread_id()] = inclusive_sum(1); }

DSV4_KERNEL(256, 1) void warp_totals(DSV4_PARAMS(Params, params)) {
  params.out[thread_id()] = broadcast<kWarp - 1>(inclusive_sum(warp_id() + 1));
}

DSV4_KERNEL(256, 1) void wave_votes(DSV4_PARAMS(Params, params)) {
  const u32 thread = thread_id();
  const bool predicate = params.input[thread] > 0.0f;
  params.out[thread * 3] = any_of_wave(predicate);
  params.out[thread * 3 + 1] = count_below(wave_ballot(predicate));
  params.out[thread * 3 + 2] = wave_first(thread);
}

DSV4_KERNEL(256, 1) void reductions(DSV4_PARAMS(Params, params)) {
  const u32 word = float_bits(params.input[thread_id()]);
  u32* out = params.out + thread_id() * 7;
  out[0] = warp_sum(word);
  out[1] = warp_min(word);
  out[2] = warp_max(word);
  out[3] = inclusive_sum(word);
  out[4] = broadcast<0>(word);
  out[5] = broadcast<19>(word);
  out[6] = broadcast<kWarp - 1>(word);
}

DSV4_KERNEL(256, 1) void shuffles(DSV4_PARAMS(Params, params)) {
  const u32 thread = thread_id();
  params.out[thread * 4] = shuffle(thread, params.n);
  params.out[thread * 4 + 1] = shuffle_up(thread, params.n);
  params.out[thread * 4 + 2] = shuffle_xor(thread, params.n);
  params.out[thread * 4 + 3] = shuffle(thread, thread * 7 + params.n);
}

DSV4_KERNEL(256, 1) void positions(DSV4_PARAMS(Params, params)) {
  const u32 block = (block_z() * grid_y() + block_y()) * grid_x() + block_x();
  u32* out = params.out + (block * params.n + thread_id()) * 8;
  out[0] = thread_id();
  out[1] = block_x();
  out[2] = block_y();
  out[3] = block_z();
  out[4] = lane_id();
  out[5] = warp_lane();
  out[6] = warp_id();
  out[7] = lanes_below_mask();
}

DSV4_KERNEL(256, 1) void bits(DSV4_PARAMS(Params, params)) {
  const u32 index = block_x() * params.n + thread_id();
  const u32 word = float_bits(params.input[index]);
  u32* out = params.out + index * 5;
  out[0] = popcount(word);
  out[1] = popcount(static_cast<u64>(word) << 32 | ~word);
  out[2] = lowest_set(word | 0x80000000u);
  out[3] = leading_zeros(word);
  out[4] = float_bits(from_bits(word));
}

DSV4_KERNEL(256, 1) void halves(DSV4_PARAMS(Params, params)) {
  const u32 stride = grid_x() * 256;
  for (u32 index = block_x() * 256 + thread_id(); index < params.n; index += stride) {
    params.out[index] = half_bits(params.input[index]);
  }
}

DSV4_KERNEL(256, 1) void counters(DSV4_PARAMS(Params, params)) {
  DSV4_SHARED(Shared, shared);
  if (thread_id() == 0) shared.count = 0;
  block_barrier();
  const u32 slot = shared_add(shared.count, 2);
  shared.values[slot / 2] = slot;
  const u32 ticket = global_add(params.out, 1);
  block_barrier();
  params.out[1 + ticket] = shared.values[thread_id()] + shared.count;
}

DSV4_KERNEL(256, 1) void loads(DSV4_PARAMS(Params, params)) {
  wait_for_producer();
  const u32 thread = thread_id();
  const Float4 four = load_vector(params.input + thread * 4);
  const float one = load_scalar(params.input + thread);
  const i32 word = load_scalar(reinterpret_cast<const i32*>(params.input) + thread);
  release_consumer();
  device_fence();
  params.out[thread * 4] = float_bits(four.x + four.y * 2.0f);
  params.out[thread * 4 + 1] = float_bits(four.z + four.w * 2.0f);
  params.out[thread * 4 + 2] = float_bits(one);
  params.out[thread * 4 + 3] = static_cast<u32>(word);
}
"""

CLUSTERS = """
struct Ring {
  UInt4 fours[16];
  UInt2 pairs[64];
  u32 words[64];
  TransactionBarrier arrived[2];
};

DSV4_KERNEL(64, 1) DSV4_CLUSTER(1, 4, 1) void ring(DSV4_PARAMS(Params, params)) {
  DSV4_SHARED(Ring, shared);
  const u32 thread = thread_id(), rank = cluster_rank(), size = cluster_size();
  if (thread < 2) init_barrier(shared.arrived[thread]);
  cluster_arrive();
  cluster_wait();
  const u32 next = (rank + 1) % size, previous = (rank + size - 1) % size;
  if (thread == 0) expect_bytes(shared.arrived[0], 64 * (sizeof(u32) + sizeof(UInt2)));
  push(shared.words[thread], next, rank * 1000 + thread, shared.arrived[0]);
  push(shared.pairs[thread], next, UInt2{rank, thread}, shared.arrived[0]);
  await_bytes(shared.arrived[0], 0);
  const UInt2 pair = shared.pairs[thread];
  if (thread == 0) expect_bytes(shared.arrived[1], 16 * sizeof(UInt4));
  const u32 word = shared.words[thread % 16];
  if (thread < 16) push(shared.fours[thread], previous, UInt4{word, rank, thread, 7}, shared.arrived[1]);
  await_bytes(shared.arrived[1], 0);
  const UInt4 four = shared.fours[thread % 16];
  const u32 block = block_y() * grid_x() + block_x();
  params.out[(block * 64 + thread) * 3] = shared.words[thread];
  params.out[(block * 64 + thread) * 3 + 1] = pair.x * 100 + pair.y;
  params.out[(block * 64 + thread) * 3 + 2] = four.x + four.y * 100000 + four.z * 1000000 + four.w * 100000000;
  cluster_barrier();
}
"""


def reduction_words(threads: int) -> list[Words]:
    """Inputs of `reductions`: any words, one lane of each warp that differs, and each lane's own power of two."""
    lane = np.arange(threads) % 32
    random = np.random.default_rng(7).integers(0, 1 << 32, threads, np.uint32)
    alone = [np.where(lane == one, 0xFFFFFFFF, 5).astype(np.uint32) for one in (0, 15, 16, 31)]
    return [random, *alone, (1 << lane).astype(np.uint32)]


def reduced(words: Words) -> Words:
    """What `reductions` writes, seven words a thread."""
    warps = words.reshape(-1, 32)
    every = [warps.sum(1, dtype=np.uint32), warps.min(1), warps.max(1)]
    columns = [column.repeat(32) for column in (*every, warps[:, 0], warps[:, 19], warps[:, 31])]
    scan = np.cumsum(warps, axis=1, dtype=np.uint32).reshape(-1)
    return np.stack([*columns[:3], scan, *columns[3:]], axis=1)


def voted(scores: Floats, wave: int) -> Words:
    """What `wave_votes` writes, three words a thread."""
    waves = (scores > 0).reshape(-1, wave)
    below = np.cumsum(waves, axis=1) - waves
    first = np.arange(0, scores.size, wave)
    columns = (waves.any(1).repeat(wave), below.reshape(-1), first.repeat(wave))
    return np.stack(columns, axis=1).astype(np.uint32)


def ballotted(scores: Floats, wave: int) -> Words:
    """What `ballots` writes, four words a thread."""
    votes = scores > 0
    warps, waves = votes.reshape(-1, 32), votes.reshape(-1, wave)
    mask = (warps.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(1).repeat(32)
    below = np.cumsum(warps, axis=1) - warps
    low = (waves[:, :32].astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(1).repeat(wave)
    return np.stack([mask, below.reshape(-1), low, waves.sum(1).repeat(wave)], axis=1).astype(np.uint32)


def counted(words: Words) -> Words:
    """What `bits` writes, five words a thread."""
    rows = []
    for word in words.tolist():
        both, lowest = (word << 32) | (~word & 0xFFFFFFFF), word | 1 << 31
        ones = bin(word).count("1"), bin(both).count("1")
        rows.append([*ones, (lowest & -lowest).bit_length() - 1, 32 - word.bit_length(), word])
    return np.array(rows, np.uint32)


def loaded(scores: Floats) -> Words:
    """What `loads` writes, four words a thread."""
    four, two = scores.reshape(-1, 4), np.float32(2)
    columns = [four[:, 0] + four[:, 1] * two, four[:, 2] + four[:, 3] * two, *(2 * [scores[: len(four)]])]
    return np.stack(columns, axis=1).view(np.uint32)


def half_boundaries() -> Floats:
    """Every fp16 value, every midpoint between neighbours, the fp32 values beside both, and the specials."""
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    ends = np.append(halves, np.float32(65536))
    middles = (ends[:-1] + ends[1:]) / 2
    at = np.concatenate([ends, middles])
    around = np.concatenate([at, np.nextafter(at, np.float32(np.inf)), np.nextafter(at, np.float32(-1))])
    tiny = np.array([1, 2, 0x7FFFFF, 0x800000, 0x33000000, 0x33000001, 0x32FFFFFF], np.uint32).view(np.float32)
    large = np.array([3.4e38, np.inf, 65519.996, 65520.0, 65535.0], np.float32)
    everything = np.concatenate([around, tiny, large]).astype(np.float32)
    return np.concatenate([everything, -everything])


def halved(scores: Floats) -> Words:
    """What `halves` writes for numbers."""
    with np.errstate(over="ignore"):
        return scores.astype(np.float16).view(np.uint16).astype(np.uint32)


#: for `bits`: no bit, one at either end, all, and others
BITS = np.array([0, 1, 2, 0x80000000, 0xFFFFFFFF, 0x00F0_0100, *range(3, 250, 7)], np.uint32)
#: NaN of both signs: signalling, quiet, and with all bits of the payload
NANS = np.array([0x7F800001, 0x7FC00000, 0x7FFFFFFF, 0xFF800001, 0xFFFFFFFF], np.uint32)
#: for `wave_votes`: waves without a positive score, with one in either half, with several, and full ones
VOTES = np.array([-1] * 64 + [1] + [-1] * 63 + [-1] * 40 + [1] + [-1] * 23 + [1] * 32 + [1, -1] * 16, np.float32)
