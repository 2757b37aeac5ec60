"""The broker's properties, declared by subject: one frozen pydantic model for each module.

Private. ``settings.broker`` puts the models together into ``Settings``; nobody else imports them. A property's name,
default, type, whether it is live, and the text that the README and ``doctor`` show for it all stand in its declaration.
A new property is a field in one of these models and nothing else; then run ``make tables``.
"""
