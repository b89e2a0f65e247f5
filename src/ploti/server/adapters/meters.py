"""Metrics in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import generate_latest

from ploti.model.admin import OutcomeKind
from ploti.model.wire import Instant
from ploti.server.deliver.answers import Result
from ploti.server.ports.measures import Measures

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15)


class PrometheusMeters:
    """The Meters port, with a registry of its own."""

    def __init__(self) -> None:
        self._registry = own = CollectorRegistry()
        ProcessCollector(registry=own)
        attempts = Counter(
            "ploti_delivery_attempts",
            "Attempts to deliver an event to a webhook, by what became of the delivery.",
            ["result"],
            registry=own,
        )
        self._seconds = Histogram(
            "ploti_delivery_attempt_seconds",
            "How long receivers took to answer.",
            buckets=_SECONDS,
            registry=own,
        )
        self._ended = Counter(
            "ploti_checks",
            "Checks, pushes and builds again, by how they ended.",
            ["outcome"],
            registry=own,
        )
        self._attempted = {result: attempts.labels(result) for result in Result}
        for outcome in OutcomeKind:
            self._ended.labels(outcome)
        self._slots = self._gauge("delivery_slots_in_use", "Webhooks that have a turn now.")
        self._behind = self._gauge("delivery_events_behind", "Events that webhooks are behind.")
        self._oldest = self._gauge(
            "delivery_oldest_undelivered_seconds", "Age of the oldest undelivered event."
        )
        self._waiting = self._gauge("deliveries_waiting", "Deliveries that wait for a retry.")
        self._webhooks = self._gauge("webhooks", "Webhooks: on, or why they are off.", "state")
        self._versions = self._gauge("versions", "Versions by their states.", "state")
        self._holds = self._gauge("holds", "Holds by their states.", "state")
        self._building = self._gauge("builds_under_way", "Checks and pushes under way.")
        self._failing = self._gauge("sources_failing", "Sources that could not be read last.")
        self._due = self._gauge("jobs_due", "Jobs that are due and not begun.", "kind")
        self._running = self._gauge("jobs_running", "Jobs that are being done.", "kind")

    def attempted(self, result: Result, *, ms: int) -> None:
        """Count an attempt."""
        self._attempted[result].inc()
        self._seconds.observe(ms / 1000)

    def serving(self, lanes: int) -> None:
        """Set the slots in use."""
        self._slots.set(lanes)

    def ended(self, outcome: OutcomeKind) -> None:
        """Count a check."""
        self._ended.labels(outcome).inc()

    def text(self, measures: Measures, *, now: Instant) -> bytes:
        """Everything, with what stands in the database now."""
        since = measures.undelivered_since
        self._behind.set(measures.events_behind)
        self._oldest.set(max((now - since).total_seconds(), 0) if since else 0)
        self._waiting.set(measures.waiting)
        self._building.set(measures.building)
        self._failing.set(measures.failing_sources)
        _fill(self._webhooks, measures.webhooks)
        _fill(self._versions, measures.versions)
        _fill(self._holds, measures.holds)
        _fill(self._due, {queue.kind: queue.due for queue in measures.jobs})
        _fill(self._running, {queue.kind: queue.running for queue in measures.jobs})
        return generate_latest(self._registry)

    def _gauge(self, name: str, told: str, *labels: str) -> Gauge:
        return Gauge(f"ploti_{name}", told, labels, registry=self._registry)


def _fill(gauge: Gauge, values: Mapping[str, int]) -> None:
    """Set a gauge for each label, and forget those that there are no more."""
    gauge.clear()
    for label, value in values.items():
        gauge.labels(label).set(value)
