"""Draws the history of volumes: as one HTML page, or as a folder of pictures.

``values`` are what the pipeline reads from its history, ``wording`` puts them into words, ``figure`` draws a curve,
``svg`` and ``page`` make the page of it, ``pictures`` the PNGs. Nothing here knows Spark. ``quotahost.cli.report``
imports the package, and ``quotahost.pipeline.history`` its values.
"""
