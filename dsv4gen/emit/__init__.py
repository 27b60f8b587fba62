"""Rendered text -> files on disk, whole or not at all.

manifest    plans -> the manifest's JSON
writer      staged, atomic, manifest last; journal for interrupted first builds
drift       what differs between a tree and what its specs make: stale, edited, orphan, missing
stamp       remembers finished builds by content, so that a build with nothing to do parses nothing
build       the entry point: build(...)
"""
