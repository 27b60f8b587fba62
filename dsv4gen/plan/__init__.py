"""Spec + target facts -> the frozen plan that templates and manifest are made from.

ir          the data: FamilyPlan, Op, LaunchPath, Launch, Kernel, Bucket, Workspace
reader      spec text -> expressions with facts and constants folded in
paths       launch and row paths: capability requirements folded, coverage proven
tensors     spec tensors -> tensor table, workspaces with proven sizes, and the Params layout
reach       which options and which row paths launches of a kernel reach
spills      what instances of a kernel may spill on this target
kernels     tiles that fit, buckets, emitted instances, symbols
make        the entry point: make_plan(family, record)
"""
