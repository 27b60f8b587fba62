"""One thread per process: pytest runs a process per core, and tests start workers beside it.

Threads of torch and of BLAS wait for each other by spinning. Where processes share the cores they take them from the
ones that they wait for: on two busy cores the tests of compress's reference took 9 s instead of 1.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
