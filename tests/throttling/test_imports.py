"""The models of Kafka's arithmetic import nothing else of quotahost."""

import pkgutil
import subprocess
import sys

from quotahost import throttling

ALLOWED = {"quotahost", "quotahost.model.quotas", "quotahost.model.volumes"}


def test_throttling_imports_no_module_of_quotahost_but_the_model() -> None:
    names = [f"quotahost.throttling.{module.name}" for module in pkgutil.iter_modules(throttling.__path__)]
    program = f"import sys, {', '.join(names)}; print(*(n for n in sys.modules if n.startswith('quotahost')))"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert {name for name in loaded.split() if not name.startswith("quotahost.throttling")} <= ALLOWED
