"""Small header-free kernels in both dialects, and the records they are compiled for."""

from __future__ import annotations

import functools

from dsv4gen.base import paths
from dsv4gen.spec.load import Specs, load_specs
from dsv4gen.target import TargetRecord, resolve_target

HIP_TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250")
CUDA_TARGETS = ("sm_80", "sm_89", "sm_90", "sm_100", "sm_120")

HIP_LAYER = """
#define DEVICE static inline __attribute__((device, always_inline))
#define KERNEL(threads) extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, threads))) void
#define SHARED __attribute__((shared)) static
DEVICE unsigned thread_id() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE unsigned block_id() { return __builtin_amdgcn_workgroup_id_x(); }
DEVICE void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
"""

CUDA_LAYER = """
#define DEVICE static __device__ __forceinline__
#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
#define SHARED __shared__
DEVICE unsigned thread_id() { return threadIdx.x; }
DEVICE unsigned block_id() { return blockIdx.x; }
DEVICE void barrier() { __syncthreads(); }
"""

TWO_KERNELS = """
struct Params { const float* x; float* y; unsigned n; };
KERNEL(256) reverse(const Params p) {
  SHARED float values[256];
  unsigned t = thread_id(), i = block_id() * 256 + t;
  values[t] = i < p.n ? p.x[i] : 0.0f;
  barrier();
  if (i < p.n) p.y[i] = values[255 - t];
}
KERNEL(64) one(const Params p) { p.y[thread_id()] = 1.0f; }
"""

# More live values than a block of 1024 threads has registers for: 128 on CDNA, 192 on RDNA, 64 on NVIDIA.
SPILLING = """
KERNEL(1024) spilling(float* x) {
  float live[200];
#pragma unroll
  for (int i = 0; i < 200; ++i) live[i] = x[i * 1024 + thread_id()];
  barrier();
#pragma unroll
  for (int i = 0; i < 200; ++i) live[i] = live[i] * live[(i + 99) % 200] + 1.0f;
  barrier();
#pragma unroll
  for (int i = 0; i < 200; ++i) x[i * 1024 + thread_id()] = live[i];
}
"""

SHARED_BYTES = """
KERNEL(256) roomy(float* x) {
  SHARED float room[BYTES / 4];
  room[thread_id()] = x[0];
  barrier();
  x[thread_id()] = room[thread_id() ^ 1];
}
"""


@functools.lru_cache(maxsize=1)
def specs() -> Specs:
    """The project's own specs, loaded once."""
    return load_specs(paths.specs())


@functools.lru_cache(maxsize=32)
def record(name: str) -> TargetRecord:
    """A target's record."""
    return resolve_target(specs(), name)


def source(target: TargetRecord, body: str) -> str:
    """A body with the layer of the target's dialect in front."""
    return (HIP_LAYER if target.detect.api == "hip" else CUDA_LAYER) + body


def with_shared_bytes(target: TargetRecord, size: int) -> str:
    """A kernel `roomy` with that many bytes of static shared memory."""
    return source(target, SHARED_BYTES.replace("BYTES", str(size)))
