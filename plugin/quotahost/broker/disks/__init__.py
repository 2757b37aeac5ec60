"""This broker's file stores: which volumes its log directories lie on, how full they are, and what fills them."""
