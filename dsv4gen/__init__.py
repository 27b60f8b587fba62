"""dsv4gen: a code-generation compiler for the DeepSeek-V4 inference kernels on AMD and NVIDIA GPUs."""

from __future__ import annotations

__version__ = "0.1.0"
