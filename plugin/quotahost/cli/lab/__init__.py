"""The lab: what operators run on a desk, before a broker has a setting or after it had one. No broker runs here.

``simulate disk`` plays clients against a disk (``simulate_disk``). ``world`` puts a scene together from
one model of the loop: ``host`` decides with the real policy, ``broker`` lets limits follow by the real tap, clients
write to a disk (``traffic``). ``simulate quota`` plays requests against one quota.

``report`` draws the history that the pipeline keeps of volumes, and ``replay`` plays a policy over it, with the same
host and tap (``play``). Both read it by ``history`` into ``curves``; ``drawing`` and ``pages`` make pictures and HTML.
Only ``quotahost.cli.main`` imports the package.
"""
