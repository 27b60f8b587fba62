// Kernels with one mistake each when FAULT is defined; correct without it.
#include "device.h"

// Gathers rows through a page table. The mistake: reads the table beyond the sequence's last page.
KERNEL(256) page_table(u32* out, const u32* pages, const u32* pool, u32 tokens) {
  const u32 token = block_id() * 256 + thread_id();
#ifdef FAULT
  const u32 limit = (tokens + 255) / 256 * 256;
#else
  const u32 limit = tokens;
#endif
  if (token < limit) out[token % 1024] = pool[pages[token / 4] * 4 + token % 4];
}

// Sums what the other half of the block wrote. The mistake: the last quarter is never written.
KERNEL(256) unwritten(u32* out) {
  SHARED u32 values[256];
  const u32 t = thread_id();
#ifdef FAULT
  if (t < 192)
#endif
    values[t] = t;
  block_barrier();
  out[t] = values[255 - t] + values[t ^ 128];
}

// A barrier that only the first 40 threads reach.
KERNEL(256) divergent(u32* out) {
  SHARED u32 values[256];
  const u32 t = thread_id();
  values[t] = t;
#ifdef FAULT
  if (t < 40)
#endif
    block_barrier();
  out[t] = values[t];
}

// Waves that wait at different barriers.
KERNEL(256) two_barriers(u32* out) {
  SHARED u32 values[256];
  const u32 t = thread_id();
  values[t] = t;
#ifdef FAULT
  if (__builtin_amdgcn_readfirstlane(t) < 128) {
    block_barrier();
    out[t] = values[t] + 1;
  } else {
    out[t] = values[t] + 2;
    block_barrier();
  }
#else
  block_barrier();
  out[t] = values[t] + 1;
#endif
}

// Waits for a flag. The mistake: the block that sets it runs later, or never.
KERNEL(64) spin(u32* out, u32* flag) {
#ifdef FAULT
  while (__hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0) {
  }
#endif
  out[thread_id()] = *flag;
}

// Writes outside the block's LDS.
KERNEL(64) lds_bounds(u32* out, u32 at) {
  SHARED u32 values[64];
  const u32 t = thread_id();
  values[t] = t;
  block_barrier();
#ifdef FAULT
  values[t + at] = 1;
  block_barrier();
#endif
  out[t] = values[63 - t];
}

// Two waves write one byte of a dword, two the other bytes of it: only the former is a race.
KERNEL(256) bytes(u32* out) {
  SHARED u8 values[256];
  const u32 t = thread_id();
#ifdef FAULT
  values[(t * 4 + t / 64) % 256 & ~(t / 128)] = static_cast<u8>(t);
#else
  values[(t * 4 + t / 64) % 256] = static_cast<u8>(t);
#endif
  block_barrier();
  out[t] = values[t];
}

// Dequantises fp8 codes with the target's own conversion. OCP codes on a FNUZ target come out halved.
#ifdef HAS_FP8
KERNEL(256) dequantise(float* out, const u32* codes) {
  typedef float Pair __attribute__((ext_vector_type(2)));
  const u32 t = thread_id();
  const Pair pair = __builtin_amdgcn_cvt_pk_f32_fp8(static_cast<i32>(codes[t]), false);
  out[2 * t] = pair.x;
  out[2 * t + 1] = pair.y;
}
#endif
