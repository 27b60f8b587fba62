"""Proof on the rendered text that no line is for another target.

tokens      comments and strings of C++ taken out, so that only code is searched
foreign     words of another dialect or of a capability the target lacks; preprocessor conditionals
parses      balanced C++ delimiters; Python that compiles and binds every name it reads
check       the entry point: check_file(file, plan)
"""

from dsv4gen.lint.check import check_file

__all__ = ["check_file"]
