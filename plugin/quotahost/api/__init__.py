"""This package is the API for plugins: roles, context, broker, and the contract of host and plugin. Public.

A plugin is a Python class that takes one of four roles (:class:`Role`) and has the methods of that role's Protocol. It
imports this package, :mod:`quotahost.model` (the values), :mod:`quotahost.units` (types of properties),
:mod:`quotahost.throttling` (Kafka's arithmetic) and, in its tests, :mod:`quotahost.testing`. Every other module is
private and may change in any release. ``docs/plugins.md`` begins with a first plugin.

The contract between the host (quotahost inside the broker) and a plugin is in numbered sentences. ``quotahost.testing``
checks a plugin against the contract; an error of a check has the number of the sentence that the plugin breaks:

 1. Loading. A package offers its plugin as an entry point of the group of its role (``quotahost.suppliers``,
    ``quotahost.factor_sources``, ``quotahost.policies`` or ``quotahost.tasks``). The host imports an entry point once,
    on the host thread, when the broker starts or when a live change names the plugin. The host never imports a plugin
    that the broker's properties don't name. If a named plugin can't be imported, built or started, the broker doesn't
    start, or the broker refuses the live change; one error gives the reason. Imported code stays until the broker
    restarts or, with ``python.process=child``, a new ``python.generation`` starts a new Python.
 2. Building. The host calls the entry point with one argument, a :class:`Context`, and the result is the plugin. So an
    entry point is a class whose ``__init__`` takes the context, or a function that returns the plugin. Building must
    not do I/O that may block. If the entry point has an attribute ``Section``, a pydantic model, the host validates the
    properties ``plugin.NAME.*`` with this model and passes the result as ``context.section``. If there is no such
    attribute, ``context.section`` is None.
 3. The host thread. One thread, the host thread, calls the suppliers, the factor source and the policy, one after the
    other, so these plugins need no locks. They must answer from memory: a task, or a thread that the plugin starts,
    does the work that may block. While a call hangs, clients that the host doesn't know yet share the newcomers'
    quota, and after ``validity`` Java applies ``fallback.action`` without Python. Requests never wait for a plugin.
    In the broker's process the host thread is not Python's main thread, so a plugin can't install a signal handler.
 4. Tasks. Each task has its own thread. The host calls ``run`` immediately, and again one ``period`` after each call
    has returned.
 5. Exceptions. The host counts each exception of a plugin and logs it (once for each type of exception, until the
    plugin works again). Then the host goes on as follows. If a supplier fails for a client, the client keeps its last
    quota, or shares the newcomers' quota if it has none yet, and the host asks the supplier again. If the factor source
    or the policy fails, the last factor stays in force for ``validity``, then ``fallback.action`` applies. If a task
    fails, the host runs the task again after its period. ``SystemExit`` and ``KeyboardInterrupt`` count as exceptions.
 6. Wrong answers. The host treats an answer of the wrong type, a rate that is not finite and above 0, and a factor
    outside 0..1 as an exception of the plugin. If a task's ``period`` becomes wrong, the last valid period applies.
    Clients that share a scope share one rate: if a supplier gives them different rates, the latest rate applies to all.
 7. Closing. If the plugin has a method ``close()``, the host calls it once, on the host thread, and calls no method of
    the plugin afterwards. The host closes a task on the task's thread. An object with several roles counts as several
    plugins. At the broker's shutdown all plugins together have 4 s. A plugin must end the threads that it started.
 8. Live changes. When ``plugin.NAME.*`` changes while the broker runs, the host validates the new properties, replaces
    ``context.section``, and then calls ``reconfigure(section)`` on the host thread. If ``reconfigure`` raises, the
    plugin continues with the new ``context.section``. If the plugin has no such method, the host builds a new plugin
    and closes the old one. The host builds the new plugin before it accepts an administrator's change. If Kafka then
    doesn't apply the change, the host only calls ``close()`` of the new plugin, on the host thread. When other
    properties change, the host replaces ``context.settings``. After either change the host asks the suppliers again for
    all known clients.
 9. Other threads. Any thread may log to ``context.log`` and call ``context.answers_changed``. Neither call blocks.
10. Announcing. The host keeps a supplier's answer until the supplier calls ``context.answers_changed`` to announce that
    the answer would now differ. A supplier whose answers depend on the time has a method ``tick()``, which the host
    calls about once a second on the host thread.
11. Client-ids. A client chooses its client-id itself. A supplier may have a method ``distinct_client_ids(principal)``,
    which returns the client-ids whose quotas may differ from the quotas of the principal's other client-ids. ``quota``
    must give equal answers for any two client-ids that are not in the result. If the result is None, or if there is no
    such method, each client-id may have its own quota. An empty collection means that quotas don't depend on the
    client-id. The host calls the method whenever it asks for a quota: return the same frozenset until the answer
    changes, and announce the change (10). quotahost asks no plugin about a principal with a name of more than 1,024
    characters. For client-ids of more than 256 characters, or with CR, U+0085, U+2028 or U+2029, quotahost asks about
    one client of the principal, ``<long>``.
12. Limits. A policy may have the methods ``soft_limit``, ``hard_limit``, ``breaches_soft_limit`` and
    ``breaches_hard_limit``; it has all four or none. They must agree with ``quota_factor``: the factor of a volume is
    0 if the volume breaches the hard limit, and 1 if it doesn't breach the soft limit. If a limit is not None, the
    volume breaches the limit from its level on. No volume reaches the hard limit before the soft limit. The host asks
    for the limits of this broker's volumes after their factors, and shows the limits in the metrics. If a limit method
    fails, the factor stands, and the metrics show no limits. A volume of any broker that has reached its hard limit
    keeps the factor 0 until ``pause.resume.free-share`` of the way back to the soft limit is free, even if
    ``quota_factor`` returns more. If a limit method fails during this time, the factor of ``quota_factor`` applies.
13. The factor in force. A policy may have a method ``factor_in_force(factor)``. Before the host asks about the volumes,
    it passes the factor that has applied since the last call, even if the policy didn't decide it; 1 in shadow mode.
14. Single quota types. A factor source may have an attribute ``quota_types``, the quota types that its factor is for.
    The host reads the attribute once, after it has built the plugin. Any number of such sources may stand beside one
    source without the attribute; for each quota type the smallest factor applies. ``read`` of such a source returns a
    factor above 0, or None for factor 1; any other answer is an exception (6). After an exception the source's factor
    is 1 immediately, and ``fallback.action`` never applies to the source.
15. News. A supplier may have two more methods. The host calls ``client_quota_changed(change)`` when one of Kafka's
    client quotas is set or removed (KIP-55, KIP-546); a new supplier first gets each stored client quota. The host
    calls ``cluster_changed(cluster)`` when Kafka has new metadata; the set of live brokers may have changed or not.
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
