"""Spec + target facts -> the frozen plan that templates and manifest are made from.

ir          the data: FamilyPlan, Op, LaunchPath, Launch, Kernel, Bucket, Workspace
tensors     spec tensors -> tensor table and the Params layout
paths       launch and row paths: capability requirements folded, coverage proven
kernels     tiles that fit, buckets, emitted instances, symbols
make        the entry point: make_plan(family, record)
digest      the plan's content digest
"""
