"""``quotahost simulate``: shows what a setting would do, before anybody sets it.

Each kind of simulation is a command of its own in a module of its name: ``quota`` plays requests against a quota, and
``disk`` lets clients fill a disk (``options`` makes the scene, ``recording`` plays it, ``picture`` draws it). Only
``quotahost.cli.main`` imports the package.
"""
