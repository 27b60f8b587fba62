"""The families in plain torch: the definition of right, the calls that `verify` makes, and the inputs of timed calls.

Shared by families:

case      one call of an op with known results
compare   comparators: exact, ulp, the contract's attention rule
covering  few cases that contain every pair of levels of any two factors
fp8       e4m3 dialects and UE8M0 scales, decoded and encoded from their definitions
hazards   inputs that break kernels, by the names a spec lists; poisoned buffers
pages     what every paged cache has to hold
workload  inputs of timed calls as fresh sets that rotate, and a judge on the device
paged_bench  paged FP8 caches of timed calls

A family's definition; then its cases and timed inputs, each with what only they need:

topk  select the k largest scores of each row
topk_rows  where the scores of a row lie, and what a position becomes in each mode
topk_scores, topk_cases, topk_bench
gather_dequant  gather and dequantise rows of a paged FP8 cache
gather_dequant_cases, gather_dequant_bench
indexer_logits  scores of an indexer's queries over paged keys
indexer_logits_cases, indexer_logits_bench
sparse_decode  attention of query heads over selected tokens of paged FP8 caches
sparse_decode_cases, sparse_decode_bench
qk_norm_rope  RMSNorm of heads and rotation by position
qk_norm_rope_calls  its ops by name, behind `target="reference"`
qk_norm_rope_case, qk_norm_rope_cases, qk_norm_rope_bench
compress  the compressor's mathematics: pool, RMSNorm, rotation, Hadamard transform
compress_plan, compress_state  the compressor driven by plans: rings of rows, the online partial
compress_store, compress_v41  cache records: quantise, store, judge; whole rows of V4.1
compress_v1  plans of the first upstream ABI
compress_world  compressors under schedules of many requests
compress_case, compress_cases, compress_stage_cases, compress_v1_cases, compress_edges, compress_bench
"""

from __future__ import annotations

from pathlib import Path

from dsv4gen.base.extensions import reference_folders

# References of families that extensions add are modules of this package too.
__path__.extend(str(folder) for folder in reference_folders(Path(__file__).parent))
