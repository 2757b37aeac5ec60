"""From the name of an entry point to a plugin that was checked and built.

Private. The host and the testing kit build plugins with it, the command line lists them. It knows the contract
(``quotahost.api``) and the settings, and no plugin.
"""
