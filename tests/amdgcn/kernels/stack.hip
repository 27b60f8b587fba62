// Kernels that need a stack: spilled registers, arrays indexed at run time, calls, recursion, generic pointers.
#include "device.h"

constexpr u32 kTable = 16;
CONSTANT u32 table[kTable] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};

// Keeps 48 values alive across two passes with few registers: the compiler has to spill.
KERNEL(256) __attribute__((amdgpu_num_vgpr(24))) spill(u32* out, const u32* in) {
  const u32 t = thread_id();
  u32 values[48];
#pragma unroll
  for (u32 i = 0; i < 48; ++i) values[i] = in[t * 48 + i] * (2 * i + 1);
  u32 sum = 0;
#pragma unroll
  for (u32 i = 0; i < 48; ++i) {
    sum = sum * 31 + values[i];
    __builtin_amdgcn_sched_barrier(0);
  }
#pragma unroll
  for (u32 i = 0; i < 48; ++i) out[t * 48 + i] = values[47 - i] ^ sum;
}

// Reads through a pointer that may point to LDS, to the stack or to global memory.
OUT_OF_LINE u32 weigh(const u32* p, u32 n) {
  u32 sum = 0;
  for (u32 i = 0; i < n; ++i) sum += p[i] * table[(i + n) % kTable];
  return sum;
}
OUT_OF_LINE u32 descend(u32 n) { return n < 2 ? n : descend(n - 1) + weigh(&n, 1) + descend(n - 2); }

KERNEL(256) pointers(u32* out, const u32* in, u32 n) {
  SHARED u32 shared[256];
  const u32 t = thread_id();
  u32 local[kTable];
  for (u32 i = 0; i < kTable; ++i) local[i] = i * n;
  shared[t] = t * n;
  block_barrier();
  local[t % kTable] += 5;
  const u32* where = t % 3 == 0 ? shared + t % 128 : t % 3 == 1 ? local + t % 8 : in + t;
  out[block_id() * 256 + t] = weigh(where, 8) + descend(t % 4) + local[(t + 3) % kTable];
}

// Sizes of the launch, from the hidden arguments.
KERNEL(64) sizes(u32* out) {
  if (thread_id() == 0) {
    out[block_id() * 4 + 0] = __builtin_amdgcn_workgroup_size_x();
    out[block_id() * 4 + 1] = __builtin_amdgcn_grid_size_x();
    out[block_id() * 4 + 2] = __builtin_amdgcn_workgroup_id_y();
    out[block_id() * 4 + 3] = __builtin_amdgcn_workgroup_id_z();
  }
}
