//! Whether requests overlap: a visit lasts as long as it asks for, and the most visitors at a time are remembered.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::World;
use super::wire::{Ask, Reply};

const LONGEST: f64 = 300.0;
const RECENT: usize = 200;

#[derive(Default)]
pub(crate) struct Probe {
    started: u64,
    completed: u64,
    active: u64,
    max_active: u64,
    recent: Vec<Value>,
}

impl Probe {
    fn note(&mut self, phase: &str, request: u64, label: &str, seconds: (&str, f64)) {
        let mut event = json!({"phase": phase, "request_id": request, "label": label, "active": self.active});
        event[seconds.0] = seconds.1.into();
        self.recent.push(event);
        if self.recent.len() > RECENT {
            self.recent.remove(0);
        }
    }

    fn counts(&self) -> Value {
        json!({"started": self.started, "completed": self.completed, "active": self.active,
            "max_active": self.max_active})
    }
}

/// Leaves when it is dropped: a client may go away while it waits.
struct Visit<'a> {
    world: &'a World,
    label: String,
    request: u64,
    since: Instant,
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let mut probe = self.world.probe.lock().expect("nobody panics here");
        probe.active = probe.active.saturating_sub(1);
        probe.completed += 1;
        probe.note("end", self.request, &self.label, ("duration_seconds", self.since.elapsed().as_secs_f64()));
    }
}

pub(super) fn reset(world: &World) -> Reply {
    *world.probe.lock().expect("nobody panics here") = Probe::default();
    Reply::json(&json!({"status": "reset"}))
}

pub(super) async fn visit(ask: &Ask, world: &World) -> Reply {
    let label = ask.text("label").unwrap_or("probe").to_owned();
    let delay = ask.float("delay_seconds", 0.0).clamp(0.0, LONGEST);
    let (request, active) = {
        let mut probe = world.probe.lock().expect("nobody panics here");
        probe.started += 1;
        probe.active += 1;
        probe.max_active = probe.max_active.max(probe.active);
        let request = probe.started;
        probe.note("start", request, &label, ("delay_seconds", delay));
        (request, probe.active)
    };
    let visit = Visit { world, label: label.clone(), request, since: Instant::now() };
    if delay > 0.0 {
        tokio::time::sleep(Duration::from_secs_f64(delay)).await;
    }
    let seconds = visit.since.elapsed().as_secs_f64();
    drop(visit);
    let mut told = world.probe.lock().expect("nobody panics here").counts();
    for (name, value) in [
        ("request_id", json!(request)),
        ("label", json!(label)),
        ("delay_seconds", json!(delay)),
        ("duration_seconds", json!(seconds)),
        ("active_at_start", json!(active)),
    ] {
        told[name] = value;
    }
    Reply::json(&told)
}

pub(super) fn stats(world: &World) -> Reply {
    let probe = world.probe.lock().expect("nobody panics here");
    let mut told = probe.counts();
    told["recent_events"] = probe.recent.clone().into();
    Reply::json(&told)
}
