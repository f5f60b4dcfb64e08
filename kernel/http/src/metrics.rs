//! Counters and times of requests.
//!
//! Labels are closed sets: the templates of the route table, their methods, and the class of the status. All
//! combinations exist at 0 from the start, because a series that appears with its first error cannot be told
//! from one that is broken. Nothing a client chooses becomes a label.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::routes::{ROUTES, UNMATCHED};

const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    method: &'static str,
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: &'static str,
    method: &'static str,
}

pub struct HttpMetrics {
    requests: Family<RequestLabels, Counter>,
    durations: Family<RouteLabels, Histogram, fn() -> Histogram>,
}

impl HttpMetrics {
    pub fn register(registry: &mut Registry) -> Self {
        let requests = Family::default();
        // 100 µs to about 26 s.
        let histogram: fn() -> Histogram = || Histogram::new(exponential_buckets(0.0001, 4.0, 10));
        let durations = Family::new_with_constructor(histogram);
        registry.register("noetl_http_requests", "Requests answered, by class of status", requests.clone());
        registry.register(
            "noetl_http_request_duration_seconds",
            "Time from the head of a request to the head of its answer",
            durations.clone(),
        );
        let metrics = Self { requests, durations };
        metrics.pin();
        metrics
    }

    fn pin(&self) {
        let unmatched = METHODS.map(|method| (UNMATCHED, method));
        for (route, method) in ROUTES.iter().map(|row| (row.template, known(&row.method))).chain(unmatched) {
            for status in CLASSES {
                drop(self.requests.get_or_create(&RequestLabels { route, method, status }));
            }
            drop(self.durations.get_or_create(&RouteLabels { route, method }));
        }
    }

    pub fn observe(&self, route: &'static str, method: &Method, status: StatusCode, elapsed: Duration) {
        let method = known(method);
        let status = CLASSES[(status.as_u16() / 100).clamp(2, 5) as usize - 2];
        self.requests.get_or_create(&RequestLabels { route, method, status }).inc();
        self.durations.get_or_create(&RouteLabels { route, method }).observe(elapsed.as_secs_f64());
    }
}

const METHODS: [&str; 5] = ["GET", "POST", "PATCH", "DELETE", "other"];

fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET | Method::HEAD => "GET",
        Method::POST => "POST",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    fn rendered(registry: &Registry) -> String {
        let mut text = String::new();
        encode(&mut text, registry).expect("a string takes all");
        text
    }

    #[test]
    fn every_route_is_there_at_zero_from_the_start() {
        let mut registry = Registry::default();
        HttpMetrics::register(&mut registry);
        let text = rendered(&registry);
        for row in ROUTES {
            let line = format!(
                "noetl_http_requests_total{{route=\"{}\",method=\"{}\",status=\"5xx\"}} 0",
                row.template, row.method
            );
            assert!(text.contains(&line), "{line} is missing");
        }
    }

    #[test]
    fn a_request_is_counted_under_its_class() {
        let mut registry = Registry::default();
        let metrics = HttpMetrics::register(&mut registry);
        metrics.observe("/health", &Method::HEAD, StatusCode::NO_CONTENT, Duration::from_millis(1));
        let text = rendered(&registry);
        assert!(
            text.contains("noetl_http_requests_total{route=\"/health\",method=\"GET\",status=\"2xx\"} 1"),
            "{text}"
        );
        assert!(
            text.contains("noetl_http_request_duration_seconds_count{route=\"/health\",method=\"GET\"} 1"),
            "{text}"
        );
    }
}
