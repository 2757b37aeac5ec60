"""The command ``quotahost``: all that operators run. Each command is the module or package of its name."""
