"""One file per family in plain torch: the definition of right, and what tests share.

fp8             e4m3 dialects and UE8M0 scales, decoded and encoded from their definitions
gather_dequant  gather and dequantise rows of a paged FP8 cache
topk            select the k largest scores of each row
compare         comparators: exact, ulp, the contract's attention rule
hazards         inputs that break kernels, by the names a spec lists; poisoned buffers
"""
