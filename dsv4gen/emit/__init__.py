"""Rendered text -> files on disk, whole or not at all.

parallel    work that only computes, over forked processes
manifest    plans -> the manifest's JSON
writer      staged, atomic, manifest last; journal for interrupted first builds
drift       what differs between a tree and what its specs make: stale, edited, orphan, missing
select      words for targets to their names
build       the entry point: build(...)
api         the same as a function of the package
compile     code objects beside the sources
watch       a build whenever a spec or a template is saved
"""
