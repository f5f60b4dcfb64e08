//! Which version of a service serves, and what serves when it does not work.
//!
//! A service is found in the catalog like any plugin. After repeated faults the version before it serves, at last the
//! one compiled in, so that no push of a service can keep its own replacement from working.

use std::sync::Arc;
use std::time::Instant;

use noetl_contract::manifest::World;
use noetl_contract::{Digest, PluginPath, Tenant};
use noetl_host::{Fault, Module};
use noetl_registry::{Entry, Resolved, Selector};

use crate::Kernel;
use crate::health::{Admission, Subject};

/// The engine's services, by what they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    Orchestrator,
    Runner,
    StateBuilder,
    Projector,
    Publisher,
}

impl Role {
    pub const ALL: [Role; 5] = [Role::Orchestrator, Role::Runner, Role::StateBuilder, Role::Projector, Role::Publisher];

    pub fn world(self) -> World {
        match self {
            Role::Orchestrator => World::Orchestrator,
            Role::Runner => World::Runner,
            Role::StateBuilder => World::StateBuilder,
            Role::Projector => World::Projector,
            Role::Publisher => World::Publisher,
        }
    }

    /// Where the catalog has it. Data, not a dependency: whatever is pushed there serves.
    pub fn path(self) -> PluginPath {
        let path = match self {
            Role::Orchestrator => "system/orchestrate",
            Role::Runner => "system/runner",
            Role::StateBuilder => "system/state_builder",
            Role::Projector => "system/projector",
            Role::Publisher => "system/outbox_publisher",
        };
        PluginPath::new(path).expect("a path of ours")
    }
}

/// A version of a service that can be called.
#[derive(Clone)]
pub struct Service {
    pub entry: Arc<Entry>,
    pub module: Arc<Module>,
}

impl Service {
    pub fn digest(&self) -> Digest {
        self.entry.digest
    }
}

impl Kernel {
    /// The version that serves now; the error says why none does.
    pub(crate) async fn service(&self, role: Role) -> Result<Service, String> {
        let mut candidates = self.service_versions(role).into_iter();
        let mut reasons = Vec::new();
        let mut resting = Vec::new();
        for resolved in candidates.by_ref() {
            if !self.is_admitted(&resolved.entry) {
                resting.push(resolved);
                continue;
            }
            match self.prepare(&resolved).await {
                Ok(module) => return Ok(Service { entry: resolved.entry, module }),
                Err(error) => reasons.push(format!("{} {}: {error}", resolved.entry.path, resolved.entry.version)),
            }
        }
        // Better one that has just failed than none at all: what it fails at may be one execution's own.
        for resolved in resting.into_iter().rev() {
            match self.prepare(&resolved).await {
                Ok(module) => return Ok(Service { entry: resolved.entry, module }),
                Err(error) => reasons.push(format!("{} {}: {error}", resolved.entry.path, resolved.entry.version)),
            }
        }
        if reasons.is_empty() {
            reasons.push(format!("no component of the world `{}` is at `{}`", role.world(), role.path()));
        }
        Err(reasons.join("; "))
    }

    /// What can stand in for a version that failed: the one before it, then the one compiled in.
    pub(crate) async fn stand_ins(&self, role: Role, instead_of: Digest) -> Vec<Service> {
        let mut services = Vec::new();
        for resolved in self.service_versions(role) {
            if resolved.entry.digest != instead_of
                && let Ok(module) = self.prepare(&resolved).await
            {
                services.push(Service { entry: resolved.entry, module });
            }
        }
        services
    }

    /// The version the catalog names, the one before it and the one compiled in, without repetition.
    fn service_versions(&self, role: Role) -> Vec<Resolved> {
        let (path, tenant) = (role.path(), Tenant::main());
        let mut versions: Vec<Resolved> = Vec::new();
        let serving = self.catalog.resolve(&tenant, &path, &Selector::default()).ok();
        let previous = self.catalog.previous_of(&path, &Default::default()).into_iter();
        let compiled_in = self.catalog.plugin(&path).into_iter().flat_map(|plugin| plugin.versions);
        let compiled_in = compiled_in.filter(|listed| listed.embedded).map(|listed| listed.entry.version.clone());
        let earlier = previous.chain(compiled_in).filter_map(|version| {
            let selector = Selector { channel: None, version: Some(version) };
            self.catalog.resolve(&tenant, &path, &selector).ok()
        });
        for resolved in serving.into_iter().chain(earlier) {
            let known = versions.iter().any(|known| known.entry.digest == resolved.entry.digest);
            if !known && resolved.entry.manifest.world == role.world() {
                versions.push(resolved);
            }
        }
        versions
    }

    fn is_admitted(&self, entry: &Entry) -> bool {
        self.health.admit(&service_subject(entry), &entry.manifest.failure, Instant::now()) == Admission::Go
    }

    pub(crate) fn service_worked(&self, entry: &Entry) {
        self.health.succeeded(&service_subject(entry), &self.rollback, Instant::now());
    }

    /// Counts a fault of a service, and takes the version back when it has failed its trial.
    pub(crate) async fn service_faulted(&self, entry: &Entry, fault: &Fault) {
        let (policy, whose) = (&entry.manifest.failure, service_subject(entry));
        let message = noetl_scrub::scrub_text(&fault.message);
        tracing::error!(service = %entry.path, version = %entry.version, class = %fault.class, %message, "service fault");
        if let Some(trial) = self.health.faulted(&whose, fault.class, policy, &self.rollback, Instant::now()) {
            self.take_back(&trial, fault.class).await;
        }
    }
}

fn service_subject(entry: &Entry) -> Subject {
    Subject { digest: entry.digest, tenant: Tenant::main(), shared: true }
}
