"""The four roles that a plugin can take, as Protocols, and the contract they live under.

Lifecycle, the same for every role:

 1. The entry point (groups ``quotahost.suppliers``, ``.factor_sources``, ``.policies``, ``.tasks``)
    is imported only if its name is configured, once, at broker start, on the host thread. A
    configured plugin that fails to import, construct or start stops the broker with one clear
    error. A plugin that is not configured is never imported and can break nothing.
 2. It is called with one argument, a :class:`Context`, and returns the plugin: a class whose
    ``__init__`` takes the context, or a factory function. No I/O that may block belongs here.
    ``context.section`` is the validated pydantic model named by the ``Section`` attribute of
    the entry point (class or function), filled from ``plugin.NAME.*``; None if it has none.
 3. Suppliers, the factor source and the policy are called on one thread, the host thread, one
    after the other: they need no locks. They must answer from memory: what waits belongs in a
    task or in a thread of the plugin's own. While one of them hangs, new clients share the newcomers'
    quota, and after ``validity`` the shim applies ``fallback.action``; requests never wait.
 4. Each task has a thread of its own; ``run`` is called at once, then every ``period``, never
    twice at a time.
 5. An exception is counted by plugin, logged (once for each kind until it heals) and ends in the
    stated fallback: a supplier's client keeps its last quota or stays a newcomer and is asked for
    again; a factor source's last factor holds for ``validity``, then ``fallback.action``; a task runs
    again at its next period. ``SystemExit`` and ``KeyboardInterrupt`` are treated the same.
 6. A wrong answer (a rate that is not finite and above 0, a factor outside 0..1, another type) is an
    exception of that plugin.
 7. ``close()``, where there is one, is called once, on the host thread (a task's on its own thread),
    within the 5 s that the broker's shutdown grants in all; nothing is called after it. A plugin ends the
    threads that it started.
 8. Live changes of a plugin's own ``plugin.NAME.*`` properties arrive in ``reconfigure(section)``,
    validated, on the host thread; ``context.section`` is the new one by then. A plugin without it is closed
    and built anew instead. Live changes of other properties are seen in ``context.settings``. After either all
    known clients are asked for again.
 9. Any thread may log through ``context.log`` and call ``context.answers_changed``; neither waits.
10. A supplier's answer is kept until the supplier says by ``answers_changed`` that it would be another.
    One whose answers depend on the time has a method ``tick()``, called about once a second on the host
    thread.
"""

from quotahost.api.broker import Broker
from quotahost.api.context import Context
from quotahost.api.roles import (
    ClientQuotaListener,
    ClusterListener,
    DataSourceTask,
    QuotaFactorSource,
    QuotaPolicy,
    QuotaSupplier,
    Role,
    Ticking,
)

__all__ = [
    "Broker",
    "ClientQuotaListener",
    "ClusterListener",
    "Context",
    "DataSourceTask",
    "QuotaFactorSource",
    "QuotaPolicy",
    "QuotaSupplier",
    "Role",
    "Ticking",
]
