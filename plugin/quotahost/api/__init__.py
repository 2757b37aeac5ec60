"""What a plugin author implements and is given: roles, context, broker; and the contract of host and plugin. Public.

A plugin is a Python class that takes one of four roles (:class:`Role`) and has the methods of that role's Protocol. It
imports this package, :mod:`quotahost.model` (the values), :mod:`quotahost.units` (types of properties),
:mod:`quotahost.throttling` (Kafka's arithmetic) and, in its tests, :mod:`quotahost.testing`. Every other module is
private and may change in any release. ``docs/plugins.md`` begins with a first plugin.

The contract between the host (quotahost inside the broker) and a plugin. ``quotahost.testing`` checks a plugin against
it and names the number of the sentence that the plugin breaks:

 1. Loading. A package offers its plugin as an entry point of the group of its role (``quotahost.suppliers``,
    ``quotahost.factor_sources``, ``quotahost.policies`` or ``quotahost.tasks``). The host imports the entry point only
    if the broker's properties name it: once, when the broker starts or when a live change names it, on the host thread.
    If a plugin that the properties name can't be imported, built or started, the broker doesn't start, or refuses the
    change, with one error that says why. Code that was imported stays until the broker is restarted. A plugin that
    they don't name is never imported, so it can break nothing.
 2. Building. The host calls the entry point with one argument, a :class:`Context`, and the result is the plugin. So an
    entry point is a class whose ``__init__`` takes the context, or a function that returns the plugin. It must not do
    I/O that may block. If the entry point has an attribute ``Section``, a pydantic model, the host validates the
    properties ``plugin.NAME.*`` by it, and the result is ``context.section``; without that attribute
    ``context.section`` is None.
 3. The host thread. One thread, the host thread, calls the suppliers, the factor source and the policy, one after the
    other, so they need no locks. They must answer from memory: work that waits belongs in a task, or in a thread that
    the plugin starts itself. While one of them hangs, clients that the host doesn't know yet share the newcomers'
    quota, and after ``validity`` Java applies ``fallback.action`` without Python. Requests never wait for a plugin.
    In the broker's process it is not Python's main thread: signals are the broker's, and no plugin can take one.
 4. Tasks. Each task has a thread of its own. The host calls ``run`` at once and then after every ``period``, and never
    begins a call before the last one has returned.
 5. Exceptions. The host counts an exception for the plugin that raised it, logs it (once for each type of exception,
    until the plugin works again), and goes on as follows. If a supplier fails for a client, the client keeps its last
    quota, or shares the newcomers' quota if it has none yet, and the host asks again. If the factor source
    or the policy fails, the last factor stays in force for ``validity``, then ``fallback.action`` applies. If a task
    fails, the host runs it again after its period. ``SystemExit`` and ``KeyboardInterrupt`` are treated like any other
    exception.
 6. Wrong answers. The host treats an answer of the wrong type, a rate that is not finite and above 0, and a factor
    outside 0..1 as an exception of the plugin that gave it. If a task's ``period`` becomes wrong, the last one stays.
    Clients that share a scope share its rate, too: if a supplier gives them several, the one heard last is for all.
 7. Closing. If the plugin has a method ``close()``, the host calls it once, on the host thread (for a task: on the
    task's thread; one object for several roles is several plugins), and calls nothing after it. The broker's shutdown
    grants all plugins 4 s together. A plugin ends the threads that it started.
 8. Live changes. When ``plugin.NAME.*`` changes while the broker runs, the host validates the new properties, replaces
    ``context.section``, and then calls ``reconfigure(section)`` on the host thread; if that raises, the plugin goes on
    as it is, with the new ``context.section``. If the plugin has no such method, the host builds it anew and closes the
    old one. It does so before an administrator hears that the change holds:
    if the change is not applied then, the host closes the new one, which it has called nothing else of, on the host
    thread. When other properties change, the host replaces
    ``context.settings``. After either change it asks the suppliers again for all clients that it knows.
 9. Other threads. Any thread may log through ``context.log`` and call ``context.answers_changed``. Neither waits.
10. Announcing. The host keeps a supplier's answer until the supplier announces by ``context.answers_changed`` that it
    would now answer differently. A supplier whose answers depend on the time has a method ``tick()``, which the host
    calls about once a second on the host thread.
11. Client-ids. A client-id is the client's own claim. A supplier may have a method ``distinct_client_ids(principal)``,
    which names the client-ids whose quotas may differ from those of all the principal's other client-ids. For any two
    client-ids that it doesn't name, ``quota`` gives equal answers. None, or no such method: each may differ. An empty
    collection means that the client-id doesn't matter. The host asks whenever it asks for a quota; return the same
    frozenset again while nothing has changed, and announce a change (10). quotahost asks no plugin about a principal's
    name of more than 1,024 characters, nor about a client-id of more than 256 or with CR, U+0085, U+2028 or U+2029:
    all those of a principal are one client, ``<long>``.
12. Limits. A policy may have the methods ``soft_limit``, ``hard_limit``, ``breaches_soft_limit`` and
    ``breaches_hard_limit``; it has all four or none. They fit ``quota_factor``: the factor of a volume that breaches
    the hard limit is 0, that of one that doesn't breach the soft limit is 1, a limit that is not None tells from which
    consumption on it is breached, and no volume reaches the hard limit before the soft one. The host asks for this
    broker's volumes after it has asked for their factors, and shows the answers in the metrics. If one of the methods
    fails, the factor stands, and the limits are not shown. A volume of any broker that has reached its hard limit keeps
    the factor 0 until ``pause.resume.free-share`` of the way back to the soft one is free, whatever ``quota_factor``
    says; if a method fails then, the factor of ``quota_factor`` applies.
13. The factor in force. A policy may have a method ``factor_in_force(factor)``. The host calls it before it asks about
    the volumes, with the factor that has applied since the last time, whatever it came from; 1 in shadow mode.
14. Single quota types. A factor source may have an attribute ``quota_types``, the quota types that its factor is for;
    the host reads it once, after it has built the plugin.
    Any number of such sources stand beside one that has none, and for each quota type the smallest factor applies.
    Its ``read`` answers a factor above 0, or None for factor 1; anything else is an exception (6). After an exception
    its factor is 1 at once, and ``fallback.action`` never applies to it.
15. News. A supplier may have a method ``client_quota_changed(change)``: one of Kafka's client quotas was set or removed
    (KIP-55, KIP-546); when the broker starts, Kafka first passes those that it has stored. And a method
    ``cluster_changed(cluster)``: Kafka has new metadata, and the brokers that are alive may be others, or the same.
"""

from quotahost.api.broker import Broker, Disks, DiskState, Metrics
from quotahost.api.context import Context
from quotahost.api.roles import (
    DataSourceTask,
    FactorListener,
    LimitAware,
    QuotaFactorSource,
    QuotaPolicy,
    QuotaSupplier,
    Role,
)

__all__ = [
    "Broker", "Context", "DataSourceTask", "DiskState", "Disks", "FactorListener", "LimitAware", "Metrics",
    "QuotaFactorSource", "QuotaPolicy", "QuotaSupplier", "Role",
]  # fmt: skip
