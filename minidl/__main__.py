"""`python -m minidl` is the command `minidl`."""

from minidl.cli import main

main()
