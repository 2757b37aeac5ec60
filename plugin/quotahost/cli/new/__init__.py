"""``quotahost new``: writes a plugin's package, with a test that passes, for its author to go on from.

``writing`` checks the name and fills in the templates of a role; ``command`` is the command.
"""
