# The shim (Child.java) runs this in a process of its own. It is a template: the words in braces are replaced.
import os
import sys

# This comes first: output of imports must not mix with the frames, and imports must read nothing.
pipes = os.dup(0), os.dup(1)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(2, 1)
# probe.py has printed this path.
sys.path[:] = {path}.split("\n")

from quotahost.broker.host.bridge import main

main(*pipes, parent={parent})
