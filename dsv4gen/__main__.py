"""`python -m dsv4gen` is the `dsv4gen` command."""

from dsv4gen.cli import main

if __name__ == "__main__":
    main(prog_name="dsv4gen")
