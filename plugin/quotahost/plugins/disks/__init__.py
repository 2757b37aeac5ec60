"""This broker's file stores: which volumes its log directories lie on, and how full they are.

Private to ``quotahost.plugins`` and the doctor. Factor sources and the task ``publish-volumes`` read the monitor.
"""
