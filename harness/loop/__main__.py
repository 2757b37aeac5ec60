"""Plays the scene of a seed with its checks; FILE.png gets its picture: ``python -m harness.loop SEED [FILE.png]``."""

import sys
from pathlib import Path

from harness.loop.checks import violations
from harness.loop.cluster import Cluster
from harness.loop.seeds import scene_of_seed
from quotahost.cli.lab.drawing import draw_run
from quotahost.cli.lab.world import record

seed = int(sys.argv[1])
wrong = violations(seed)
print("\n".join(map(str, wrong)) or "all checks hold")
for picture in sys.argv[2:]:
    draw_run(record(Cluster(scene_of_seed(seed))), f"seed {seed}, broker 1", Path(picture))
sys.exit(1 if wrong else 0)
