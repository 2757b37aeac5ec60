"""``python -m quotahost.cli``: the command for an environment whose scripts are not on PATH."""

from quotahost.cli.main import app

app(prog_name="quotahost")
