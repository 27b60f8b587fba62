"""Rendered text -> files on disk, whole or not at all.

manifest    plans -> the manifest's JSON
writer      staged, atomic, manifest last; journal for interrupted first builds
drift       what differs between a tree and what its specs make: stale, edited, orphan, missing
build       the entry point: build(...)
compile     code objects beside the sources
watch       a build whenever a spec or a template is saved
"""
