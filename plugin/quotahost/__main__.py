"""``python -m quotahost`` runs the command ``quotahost`` in an environment whose scripts are not on PATH."""

from quotahost.cli.start import main

main()
