//! The names a template can use.
//!
//! Names are in layers: what a whole execution shares below, what one rendering adds above. A layer is never changed
//! and is shared, so adding names to a context copies none of those below. `ctx` is the whole of it again, because
//! playbooks say `ctx.name` and `name` and mean the same; a name `ctx` of one's own cannot be seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use minijinja::Value;
use minijinja::value::{Enumerator, Object};
use serde_json::{Map, Value as Json};

use super::keychain::{CREDENTIALS, KEYCHAIN, is_keychain, sealed};
use super::value::from_json;

/// A name no playbook can write, under which `now()` finds the time.
pub(super) const NOW: &str = "@now";

#[derive(Debug, Clone)]
pub struct Context {
    layer: Arc<Layer>,
}

struct Layer {
    below: Option<Arc<Layer>>,
    names: BTreeMap<Arc<str>, Value>,
    time_ms: u64,
    /// What placeholders are written with; no name leads to it.
    seal: Option<Arc<str>>,
}

impl Context {
    /// Without names. The time is what `now()` says, in milliseconds since 1970.
    pub fn new(time_ms: u64) -> Self {
        Self { layer: Arc::new(Layer { below: None, names: BTreeMap::new(), time_ms, seal: None }) }
    }

    /// Without names, and with what placeholders of secrets are written with.
    pub fn sealed(time_ms: u64, seal: Option<&str>) -> Self {
        let seal = seal.map(Arc::from);
        Self { layer: Arc::new(Layer { below: None, names: BTreeMap::new(), time_ms, seal }) }
    }

    pub fn from_map(time_ms: u64, names: &Map<String, Json>) -> Self {
        Self::new(time_ms).with(names.iter().map(|(name, value)| (name.as_str(), from_json(value))))
    }

    /// This context with more names, which hide those of before.
    pub fn with<N: Into<Arc<str>>>(&self, names: impl IntoIterator<Item = (N, Value)>) -> Self {
        let names: BTreeMap<_, _> = names.into_iter().map(|(name, value)| (name.into(), value)).collect();
        if names.is_empty() {
            return self.clone();
        }
        // An empty layer at the bottom would only be one more place to look in.
        let below = Some(&self.layer).filter(|layer| layer.below.is_some() || !layer.names.is_empty()).cloned();
        let Layer { time_ms, seal, .. } = &*self.layer;
        Self { layer: Arc::new(Layer { below, names, time_ms: *time_ms, seal: seal.clone() }) }
    }

    pub fn get(&self, name: &str) -> Option<Value> {
        self.layer.get_value_by_str(name)
    }

    pub fn time_ms(&self) -> u64 {
        self.layer.time_ms
    }

    pub(super) fn root(&self) -> Value {
        Value::from_dyn_object(Arc::clone(&self.layer))
    }
}

/// Without the seal.
impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { below, names, time_ms, .. } = self;
        f.debug_struct("Layer").field("below", below).field("names", names).field("time_ms", time_ms).finish()
    }
}

impl Layer {
    fn find(&self, name: &str) -> Option<&Value> {
        let mut layer = Some(self);
        while let Some(here) = layer {
            if let Some(value) = here.names.get(name) {
                return Some(value);
            }
            layer = here.below.as_deref();
        }
        None
    }
}

impl Object for Layer {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        match key {
            "ctx" => Some(Value::from_dyn_object(Arc::clone(self))),
            NOW => Some(Value::from(crate::view::time::rfc3339(self.time_ms))),
            KEYCHAIN => Some(sealed(self.find(key), self.seal.as_ref())),
            CREDENTIALS => Some(sealed(None, self.seal.as_ref())),
            _ => self.find(key).cloned(),
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let mut names = BTreeSet::new();
        let mut layer = Some(self.as_ref());
        while let Some(here) = layer {
            // All that is known has no keychain in it, which as a whole is nothing that could be rendered.
            names.extend(here.names.iter().filter(|(_, value)| !is_keychain(value)).map(|(name, _)| name));
            layer = here.below.as_deref();
        }
        Enumerator::Values(names.into_iter().map(|name| Value::from(Arc::clone(name))).collect())
    }
}
