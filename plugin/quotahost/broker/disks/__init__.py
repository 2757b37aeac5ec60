"""This broker's file stores: which volumes its log directories lie on, how full they are, and who looks at them.

Private. The host (and the testing kit) makes one ``DiskMonitor`` and hands it to plugins as ``context.disks``;
the command line's ``doctor`` looks once, by ``file_stores``.
"""
