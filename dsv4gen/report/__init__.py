"""What people read: explanations, listings, the machine's health.

explain     path, reasons, proof table and floors of one shape
listing     targets x families, and what is built
doctor      tools and devices found here
build       what a build wrote, drift
spec_page   docs/specs.md
model       the report: targets x families of cells, each with stages and tables
benchmarks  files of times -> measurements and charts
evidence    files of results by cell; those that cannot be used, named
stages      what a cell may say of itself
tables      paths, tiles, decisions and proofs of a manifest entry
sources     generated files, maps, templates and specs
collect     all of these -> the report
terminal, html
            the two ways to read it
command     `dsv4gen report`
"""
