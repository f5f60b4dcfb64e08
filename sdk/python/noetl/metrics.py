"""Numbers about the plugin's own work, for plugins that hold ``metrics``.

They appear under ``noetl_plugin_custom_*`` in ``/metrics``, with the plugin's path and version as labels.
"""

from __future__ import annotations

from wit_world.imports import metrics as _metrics

from .host import ask


def count(name: str, value: int = 1, **labels: str) -> None:
    """Add to a counter that only grows."""
    ask(_metrics.counter_add, name, list(labels.items()), value)


def gauge(name: str, value: float, **labels: str) -> None:
    """Set a gauge."""
    ask(_metrics.gauge_set, name, list(labels.items()), float(value))
