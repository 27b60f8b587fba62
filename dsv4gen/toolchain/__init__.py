"""Offline compilers and readers of what they produced; needs no GPU and no vendor driver.

Modules in dependency order:

    process      run one program: argument lists, a private folder, signals named
    store        compiled results kept by content, published by rename, checked when read
    diagnostics  compiler messages, mapped back to template lines
    host         C++ for this machine's CPU, shared by the SIMT build and the emulator

Nothing is probed at import; a missing tool is an error only in the step that needs it.
"""

from __future__ import annotations
