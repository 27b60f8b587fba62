"""What runs beside the model: choose, compile, cache and launch generated kernels; base + torch + standard library.

dispatch    shape, options and flags -> the launches to make, and why not the others
family      a generated family as its module sees it
"""

from dsv4gen.runtime.dispatch import Decision, decide
from dsv4gen.runtime.family import GeneratedFamily

__all__ = ["Decision", "GeneratedFamily", "decide"]
