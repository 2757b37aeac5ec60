"""The command ``quotahost``: install, doctor, plugins, properties, explain, simulate, pipeline, report.

``start`` is the entry, ``main`` registers the commands; ``explain``, ``doctor`` and ``report`` are packages of their
own, the others a module each. This is the top of the house: it may import every package, and nothing imports it. typer
and rich are used only here.
"""
