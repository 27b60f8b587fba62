"""GPUs that do not exist, each one file: mixes of facts that no template was written for."""

from __future__ import annotations

#: waves of 32 lanes, 96 KiB, no FP8, clusters whose blocks cannot reach each other's shared memory; no compiler
GFX1299 = """
target: gfx1299
extends: _rdna
summary: A GPU that does not exist.
evidence: emulated
sources: {NONE: "made up"}
compile: {source: "NONE: no compiler knows it", mark: read, clang: null, triton: {arch: gfx1201}}
detect: {source: "NONE: made up", mark: read, arch: gfx1299, capability: [12, 9]}
shared: {source: "NONE: made up", mark: read, static: 98304, block: 98304, unit: 98304}
cluster:
  source: "NONE: made up"
  mark: read
  supported: true
  portable: 4
  maximum: 8
  axis_maximum: 8
  remote_shared: false
  barrier: true
  multicast: false
  use: probe
matrix:
  source: "NONE: made up"
  mark: read
  fp8: []
  dot_floor: {bf16: [1, 1, 16], fp8: null}
  fp8_sums: null
bf16: {source: "NONE: made up", mark: read, multiply: widened}
fp8:
  source: "NONE: made up"
  mark: read
  convert: []
  matrix: []
  max_finite: {e4m3fn: 448}
  mode_bit: false
  triton: {native_since: {encode: null, decode: null}}
atomics: {source: "NONE: made up", mark: read, shared_pk_bf16: false, global_pk_bf16: false}
cache: {source: "NONE: made up", mark: read, l2: null, last_level: null}
"""

#: remote shared memory and dependent launches as on newer GPUs, fewer threads than either, and no FP8
SM_137 = """
target: sm_137
extends: _cuda_cluster
summary: A GPU that does not exist.
evidence: compiled
sources: {NONE: "made up"}
compile: {source: "NONE: no compiler knows it", mark: read, nvrtc: null, triton: {arch: 90}}
detect: {source: "NONE: made up", mark: read, capability: [13, 7]}
unit: {source: "NONE: made up", mark: read, waves_per_simd: 12, threads: 1536, blocks: 16, blocks_multi_wave: 16}
shared: {source: "NONE: made up", mark: read, static: 49152, block: 98304, unit: 102400}
cluster: {source: "NONE: made up", mark: read, maximum: 8, axis_maximum: 8, use: probe}
matrix: {source: "NONE: made up", mark: read, fp8: [], dot_floor: {fp8: null}, fp8_sums: null}
fp8:
  source: "NONE: made up"
  mark: read
  convert: []
  matrix: []
  triton: {accepted: [], native_since: {encode: null, decode: null}}
"""
