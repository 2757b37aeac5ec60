"""The command ``quotahost``: all that operators run. ``start`` is the entry, ``main`` registers the commands.

Each command is the module or package of its name. They print through ``console`` and read properties files through
``property_files``. This is the top of the house: it may import every package, and nothing imports it. Only here are
typer and rich known.
"""
