"""Numbers about the plugin's own work, for plugins that hold ``metrics``.

They appear under ``noetl_plugin_custom_*`` in ``/metrics``, with the plugin's path and version as labels.
"""

from __future__ import annotations

from wit_world.imports import metrics as _metrics

from .host import ask
from .texts import text


def count(name: str, value: int = 1, **labels: str) -> None:
    """Add to a counter that only grows."""
    ask(_metrics.counter_add, name, _labels(labels), value)


def gauge(name: str, value: float, **labels: str) -> None:
    """Set a gauge."""
    ask(_metrics.gauge_set, name, _labels(labels), float(value))


def _labels(labels: dict[str, str]) -> list[tuple[str, str]]:
    return [(text(name), text(value)) for name, value in labels.items()]
