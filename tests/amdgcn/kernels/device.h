// Device functions for the test kernels; no vendor header, so that clang and ziglang compile them alone.
#pragma once
#define DEVICE static __attribute__((device)) inline __attribute__((always_inline))
#define OUT_OF_LINE static __attribute__((device)) __attribute__((noinline))
#define KERNEL(threads) \
  extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(threads, threads))) void
#define SHARED __attribute__((shared))
#define CONSTANT __attribute__((device)) const

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i32 = int;

DEVICE u32 thread_id() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE u32 block_id() { return __builtin_amdgcn_workgroup_id_x(); }
DEVICE u32 lane_id() {
#if WAVE == 64
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
#else
  return __builtin_amdgcn_mbcnt_lo(~0u, 0);
#endif
}
DEVICE void block_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
DEVICE u64 wave_ballot(bool p) {
#if WAVE == 64
  return __builtin_amdgcn_ballot_w64(p);
#else
  return __builtin_amdgcn_ballot_w32(p);
#endif
}
DEVICE u32 shuffle_from(u32 value, u32 lane) { return __builtin_amdgcn_ds_bpermute(lane << 2, value); }
DEVICE u32 shuffle(u32 value, u32 source, u32 width) {
  return shuffle_from(value, (source & (width - 1)) + (lane_id() & ~(width - 1)));
}
DEVICE u32 shuffle_up(u32 value, u32 delta, u32 width) {
  const i32 self = lane_id(), source = self - static_cast<i32>(delta);
  return shuffle_from(value, source < (self & ~static_cast<i32>(width - 1)) ? self : source);
}
DEVICE u32 popcount(u32 x) { return __builtin_popcount(x); }
DEVICE u32 popcount(u64 x) { return __builtin_popcountll(x); }
DEVICE u32 shared_add(u32* p, u32 x) {
  return __hip_atomic_fetch_add(p, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
}
DEVICE u32 global_add(u32* p, u32 x) {
  return __hip_atomic_fetch_add(p, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
DEVICE u32 float_bits(float x) { return __builtin_bit_cast(u32, x); }
