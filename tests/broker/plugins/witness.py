"""A supplier that writes down which clients it is asked about, and has no opinion on any."""

import os
from pathlib import Path

from quotahost.api import Context
from quotahost.model import Client, Quota, QuotaType


class Witness:
    """Adds a line (principal, tab, client-id) to the file WITNESS for each client; the exempt never reach it."""

    def __init__(self, context: Context) -> None:
        self._file = Path(os.environ["WITNESS"])

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        with self._file.open("a") as file:
            file.write(f"{client.principal}\t{client.client_id}\n")
        return None
