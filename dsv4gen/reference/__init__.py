"""One file per family in plain torch: the definition of right, and what tests share.

fp8             e4m3 dialects and UE8M0 scales, decoded and encoded from their definitions
gather_dequant  gather and dequantise rows of a paged FP8 cache
indexer_logits  scores of an indexer's queries over paged keys
topk            select the k largest scores of each row
compare         comparators: exact, ulp, the contract's attention rule
hazards         inputs that break kernels, by the names a spec lists; poisoned buffers
"""

from __future__ import annotations

from pathlib import Path

from dsv4gen.base.extensions import reference_folders

# References of families that extensions add are modules of this package too.
__path__.extend(str(folder) for folder in reference_folders(Path(__file__).parent))
