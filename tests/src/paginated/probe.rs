//! Whether requests overlap: a visit lasts as long as it asks for, and the most visitors at a time are remembered.

use std::time::Duration;

use serde_json::{Value, json};

use super::World;
use super::wire::{Ask, Reply};

const LONGEST: f64 = 300.0;
const RECENT: usize = 50;

#[derive(Default)]
pub(crate) struct Probe {
    started: u64,
    completed: u64,
    active: u64,
    max_active: u64,
    recent: Vec<Value>,
}

impl Probe {
    fn note(&mut self, event: &str, label: &str) {
        self.recent.push(json!({"event": event, "label": label, "active": self.active}));
        if self.recent.len() > RECENT {
            self.recent.remove(0);
        }
    }

    fn shown(&self) -> Value {
        json!({"started": self.started, "completed": self.completed, "active": self.active,
            "max_active": self.max_active, "recent_events": self.recent})
    }
}

/// Leaves when it is dropped: a client may go away while it waits.
struct Visit<'a> {
    world: &'a World,
    label: String,
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let mut probe = self.world.probe.lock().expect("nobody panics here");
        probe.active = probe.active.saturating_sub(1);
        probe.completed += 1;
        probe.note("completed", &self.label);
    }
}

pub(super) fn reset(world: &World) -> Reply {
    *world.probe.lock().expect("nobody panics here") = Probe::default();
    Reply::json(&json!({"status": "reset"}))
}

pub(super) async fn visit(ask: &Ask, world: &World) -> Reply {
    let label = ask.text("label").unwrap_or_default().to_owned();
    let delay = ask.float("delay_seconds", 0.0).clamp(0.0, LONGEST);
    {
        let mut probe = world.probe.lock().expect("nobody panics here");
        probe.started += 1;
        probe.active += 1;
        probe.max_active = probe.max_active.max(probe.active);
        probe.note("started", &label);
    }
    let visit = Visit { world, label };
    if delay > 0.0 {
        tokio::time::sleep(Duration::from_secs_f64(delay)).await;
    }
    let label = visit.label.clone();
    drop(visit);
    Reply::json(&json!({"status": "ok", "delay_seconds": delay, "label": label}))
}

pub(super) fn stats(world: &World) -> Reply {
    Reply::json(&world.probe.lock().expect("nobody panics here").shown())
}
