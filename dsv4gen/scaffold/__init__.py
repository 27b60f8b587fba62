"""First versions of what users add: `dsv4gen new-target` and `dsv4gen new-family`.

home        where new files belong, and writing all of them or none
target      a platform file that takes its facts from the nearest target
family      a family with a tiny kernel that builds, verifies and is tested
texts/      that family, with `@name@` for its name, one folder per language
"""
