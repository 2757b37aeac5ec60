"""This broker's file stores: which volumes its log directories lie on, how full they are, and what fills them.

Private. The host (and the testing kit) makes one ``DiskMonitor`` and hands it to plugins as ``context.disks``;
the command line looks once, by ``file_stores`` and ``topics``.
"""
