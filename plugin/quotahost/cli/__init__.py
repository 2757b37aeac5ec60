"""All that operators run by ``quotahost``. Each command is the module or package of its name, or in ``lab``."""
