"""``quotahost report``: draws the history that the pipeline keeps of all volumes.

``command`` reads the options, ``progress`` lets ``quotahost.pipeline.history`` read and ``quotahost.report`` draw,
and shows how far they are. Only ``quotahost.cli.main`` imports the package.
"""
