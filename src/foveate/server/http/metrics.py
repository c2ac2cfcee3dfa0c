"""Metrics for Prometheus. Each app has a registry of its own."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

LATENCY_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self.requests = Counter("foveate_http_requests", "Requests.", ["method", "route", "status"], registry=registry)
        self.seconds = Histogram(
            "foveate_http_request_seconds", "Time to answer.", ["route"], buckets=LATENCY_BUCKETS_S, registry=registry
        )
        self.active = Gauge("foveate_http_requests_active", "Requests that wait or are in progress.", registry=registry)
        self.errors = Counter("foveate_errors", "Requests that failed, by the error's class.", ["type"], registry=registry)
        self.computes = Histogram(
            "foveate_compute_seconds", "Time to compute a context.", buckets=LATENCY_BUCKETS_S, registry=registry
        )
        self.tokens = Counter("foveate_context_tokens", "Tokens of the contexts that were computed.", registry=registry)
        self.vectors_lacking = Gauge(
            "foveate_vectors_lacking", "Records without a vector of the configured embedder.", registry=registry
        )
        self.vectors_made = Counter("foveate_vectors_made", "Vectors computed in the background.", registry=registry)
        self.embedder_failures = Counter(
            "foveate_embedder_failures", "Failed calls of the embedder in the background.", registry=registry
        )

    def text(self) -> bytes:
        return generate_latest(self._registry)
