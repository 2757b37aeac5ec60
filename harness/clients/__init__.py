"""Real clients that put load on a broker, and meters of their throughput.

``producer`` and ``consumer`` are loads that run until they are stopped; ``raw`` and ``mutations`` send single requests.
Tests, the demo and the benches import from here.
"""
