//! `noetl:metrics`: numbers a guest reports about its own work.
//!
//! Series are bounded per plugin, since a guest that puts a customer's name in a label would otherwise
//! grow the server's memory for ever.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use noetl_contract::{PluginPath, Tenant};
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use serde_json::json;

use crate::bindings::noetl::metrics::metrics as wit;
use crate::state::CallState;

/// Series a plugin may have at once, over all its versions.
const MOST_SERIES: usize = 200;
const LONGEST_NAME: usize = 64;

type Labels = Vec<(String, String)>;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Value {
    Counter(u64),
    Gauge(f64),
}

#[derive(Debug, Default)]
struct Families {
    /// (name, is counter) → (labels → value); ordered, so that the text is stable.
    series: BTreeMap<(String, bool), BTreeMap<Labels, Value>>,
    per_plugin: HashMap<PluginPath, usize>,
}

/// All series guests report.
#[derive(Debug, Clone, Default)]
pub struct CustomMetrics(Arc<Mutex<Families>>);

impl CustomMetrics {
    fn record(
        &self,
        tenant: &Tenant,
        path: &PluginPath,
        name: String,
        mut labels: Labels,
        value: Value,
    ) -> Result<(), wit::MetricsError> {
        for part in std::iter::once(&name).chain(labels.iter().map(|(key, _)| key)) {
            check_name(part)?;
        }
        if let Some((key, _)) = labels.iter().find(|(key, value)| value.len() > LONGEST_NAME || key == "plugin") {
            return Err(wit::MetricsError::InvalidName(format!("the label `{key}` is reserved or its value too long")));
        }
        for (_, value) in &mut labels {
            if let Cow::Owned(masked) = noetl_scrub::known::mask_for(tenant.as_str(), value) {
                *value = masked;
            }
        }
        labels.push(("plugin".to_owned(), path.to_string()));
        labels.sort();
        labels.dedup_by(|a, b| a.0 == b.0);
        let mut families = self.0.lock();
        let Families { series, per_plugin } = &mut *families;
        let counter = matches!(value, Value::Counter(_));
        if series.contains_key(&(name.clone(), !counter)) {
            return Err(wit::MetricsError::InvalidName(format!("`{name}` is in use for the other kind of number")));
        }
        let key = (name, counter);
        if let Some(current) = series.get_mut(&key).and_then(|family| family.get_mut(&labels)) {
            *current = match (*current, value) {
                (Value::Counter(before), Value::Counter(more)) => Value::Counter(before.saturating_add(more)),
                (_, latest) => latest,
            };
            return Ok(());
        }
        let used = per_plugin.entry(path.clone()).or_default();
        if *used >= MOST_SERIES {
            return Err(wit::MetricsError::TooManySeries);
        }
        *used += 1;
        series.entry(key).or_default().insert(labels, value);
        Ok(())
    }
}

fn check_name(name: &str) -> Result<(), wit::MetricsError> {
    let mut bytes = name.bytes();
    // The text format appends `_total` to counters; a name that ends so could take another's place.
    let valid = matches!(bytes.next(), Some(b'a'..=b'z'))
        && !name.ends_with("_total")
        && name.len() <= LONGEST_NAME
        && bytes.all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
    if valid {
        return Ok(());
    }
    Err(wit::MetricsError::InvalidName(name.chars().take(LONGEST_NAME).collect()))
}

impl CallState {
    fn report(&self, name: &str, labels: &Labels, value: Value) -> Result<(), wit::MetricsError> {
        self.drivers.metrics.record(&self.identity.tenant, &self.identity.path, name.to_owned(), labels.clone(), value)
    }
}

impl wit::Host for CallState {
    fn counter_add(
        &mut self,
        name: String,
        labels: Labels,
        value: u64,
    ) -> wasmtime::Result<Result<(), wit::MetricsError>> {
        self.charge(name.len() + labels.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>())?;
        let with = || json!({ "name": name, "labels": labels, "value": value });
        Ok(self.taped("metrics.counter-add", with, |state| state.report(&name, &labels, Value::Counter(value)))?)
    }

    fn gauge_set(
        &mut self,
        name: String,
        labels: Labels,
        value: f64,
    ) -> wasmtime::Result<Result<(), wit::MetricsError>> {
        self.charge(name.len() + labels.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>())?;
        let with = || json!({ "name": name, "labels": labels, "value": value });
        Ok(self.taped("metrics.gauge-set", with, |state| state.report(&name, &labels, Value::Gauge(value)))?)
    }
}

struct Series<'a>(&'a BTreeMap<Labels, Value>, MetricType);

impl EncodeMetric for Series<'_> {
    fn encode(&self, mut encoder: MetricEncoder) -> Result<(), std::fmt::Error> {
        for (labels, value) in self.0 {
            let mut of_labels = encoder.encode_family(labels)?;
            match value {
                Value::Counter(count) => of_labels.encode_counter::<NoLabelSet, u64, u64>(count, None)?,
                Value::Gauge(number) => of_labels.encode_gauge(number)?,
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        self.1
    }
}

impl Collector for CustomMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        for ((name, counter), values) in &self.0.lock().series {
            let kind = if *counter { MetricType::Counter } else { MetricType::Gauge };
            let name = format!("noetl_plugin_custom_{name}");
            let metric = encoder.encode_descriptor(&name, "reported by a plugin", None, kind)?;
            Series(values, kind).encode(metric)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    fn path(text: &str) -> PluginPath {
        PluginPath::new(text).expect("valid")
    }

    #[test]
    fn counters_add_up_and_carry_the_plugin() {
        let metrics = CustomMetrics::default();
        for _ in 0..2 {
            metrics
                .record(
                    &Tenant::main(),
                    &path("acme/a"),
                    "rows".into(),
                    vec![("kind".into(), "x".into())],
                    Value::Counter(3),
                )
                .expect("valid");
        }
        let mut registry = Registry::default();
        registry.register_collector(Box::new(metrics));
        let mut text = String::new();
        encode(&mut text, &registry).expect("encodes");
        assert!(text.contains("noetl_plugin_custom_rows_total{kind=\"x\",plugin=\"acme/a\"} 6"), "{text}");
    }

    #[test]
    fn a_label_that_is_a_known_secret_is_masked() {
        noetl_scrub::known::learn_for("main", "label-secret");
        let metrics = CustomMetrics::default();
        let label = ("kind".to_owned(), "label-secret".to_owned());
        metrics.record(&Tenant::main(), &path("acme/a"), "rows".into(), vec![label], Value::Counter(1)).expect("valid");
        assert!(!format!("{metrics:?}").contains("label-secret"));
    }

    #[test]
    fn one_plugin_cannot_use_up_anothers_series() {
        let metrics = CustomMetrics::default();
        let record = |who: &str, n: usize| {
            metrics.record(&Tenant::main(), &path(who), format!("m{n}"), vec![], Value::Gauge(1.0))
        };
        assert!((0..MOST_SERIES).all(|n| record("acme/a", n).is_ok()));
        assert!(matches!(record("acme/a", MOST_SERIES), Err(wit::MetricsError::TooManySeries)));
        assert!(record("acme/b", 0).is_ok() && record("acme/a", 0).is_ok());
        assert_eq!(metrics.0.lock().series.len(), MOST_SERIES, "a refused number leaves nothing behind");
    }

    #[test]
    fn names_that_would_break_the_text_format_are_refused() {
        let metrics = CustomMetrics::default();
        for bad in ["", "Rows", "rows-1", "1rows", "a\nb", "rows_total"] {
            assert!(
                metrics.record(&Tenant::main(), &path("acme/a"), bad.into(), vec![], Value::Counter(1)).is_err(),
                "{bad:?}"
            );
        }
    }
}
