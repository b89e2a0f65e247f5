"""`python -m ploti`: the same as the command `ploti`."""

from ploti.cli import main

main()
