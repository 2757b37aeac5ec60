"""``python -m quotahost.cli``: the command for an environment whose scripts are not on PATH."""

from quotahost.cli.start import main

main()
