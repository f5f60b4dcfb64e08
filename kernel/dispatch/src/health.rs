//! Which versions can be trusted with the next call.
//!
//! Two mechanisms over the same observations. *Quarantine*: a version that faults several times in a row
//! is not called for a while, so that a component that crashes on every call costs an error and not a
//! memory and a slot each time; then one call is let through to see. *Trial*: the first calls of a new
//! version on a channel are counted, and too many faults among them name it for rollback.
//!
//! What many tenants share (`system/`, `tools/`) must not be taken from all of them by one: there a
//! quarantine holds for the tenant whose calls fault, and a trial that is served well to others is not
//! failed by the faults of a single one.
//!
//! Only faults of the component count. A refusal by policy or a missing file says nothing about it.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use noetl_contract::manifest::FailurePolicy;
use noetl_contract::{Digest, PluginPath, Tenant, Version};
use noetl_host::FaultClass;
use noetl_registry::ChannelName;
use parking_lot::Mutex;

/// When a new version is taken back.
#[derive(Debug, Clone)]
pub struct RollbackOptions {
    /// A version is on trial for this many calls.
    pub calls: u32,
    /// Faults during the trial that end it.
    pub max_failures: u32,
    /// A trial ends after this time even with fewer calls.
    pub window: Duration,
    pub classes: Vec<FaultClass>,
}

impl Default for RollbackOptions {
    fn default() -> Self {
        Self {
            calls: 20,
            max_failures: 5,
            window: Duration::from_secs(3_600),
            classes: vec![FaultClass::Trap, FaultClass::Timeout, FaultClass::Memory, FaultClass::Skew],
        }
    }
}

/// A version that replaced another and has yet to prove itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trial {
    pub(crate) path: PluginPath,
    pub(crate) channel: ChannelName,
    pub(crate) version: Version,
    pub(crate) previous: Version,
}

#[derive(Debug, Default)]
struct Record {
    consecutive: u32,
    closed_until: Option<Instant>,
}

#[derive(Debug)]
struct Running {
    trial: Trial,
    calls: u32,
    faults: u32,
    until: Instant,
    /// Whose calls faulted, and whose did not; as many as the trial has calls at most.
    faulting: BTreeSet<Tenant>,
    served: BTreeSet<Tenant>,
}

impl Running {
    /// One tenant's faults alone do not count against what serves others well.
    fn is_failed(&self, options: &RollbackOptions) -> bool {
        let others_are_served = self.served.iter().any(|tenant| !self.faulting.contains(tenant));
        self.faults >= options.max_failures.max(1) && (self.faulting.len() > 1 || !others_are_served)
    }
}

/// Whose calls of which version. The tenant is named only for what tenants share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Subject {
    pub(crate) digest: Digest,
    pub(crate) tenant: Tenant,
    pub(crate) shared: bool,
}

impl Subject {
    fn key(&self) -> (Digest, Option<Tenant>) {
        (self.digest, self.shared.then(|| self.tenant.clone()))
    }
}

#[derive(Debug, Default)]
struct Observed {
    records: HashMap<(Digest, Option<Tenant>), Record>,
    trials: HashMap<Digest, Running>,
}

/// Health of every version that has been called.
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<Observed>);

/// Whether a call may go ahead.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Go,
    /// Not before this much time has passed.
    Closed(Duration),
}

fn counts(class: FaultClass) -> bool {
    !matches!(class, FaultClass::Denied | FaultClass::Fetch)
}

impl Health {
    pub(crate) fn begin_trial(&self, digest: Digest, trial: Trial, options: &RollbackOptions, now: Instant) {
        let (faulting, served) = (BTreeSet::new(), BTreeSet::new());
        let running = Running { trial, calls: 0, faults: 0, until: now + options.window, faulting, served };
        let mut observed = self.0.lock();
        // A switch to a version is a fresh start for it, also when it had been quarantined.
        observed.records.retain(|(of, _), _| *of != digest);
        observed.trials.insert(digest, running);
    }

    /// After the pause one call is let through; the next waits for what becomes of it.
    pub(crate) fn admit(&self, subject: &Subject, policy: &FailurePolicy, now: Instant) -> Admission {
        let mut observed = self.0.lock();
        if observed.records.is_empty() {
            return Admission::Go;
        }
        let Some(record) = observed.records.get_mut(&subject.key()) else { return Admission::Go };
        match record.closed_until {
            Some(until) if until > now => Admission::Closed(until - now),
            Some(_) => {
                record.closed_until = Some(now + pause(policy));
                Admission::Go
            }
            None => Admission::Go,
        }
    }

    pub(crate) fn succeeded(&self, subject: &Subject, options: &RollbackOptions, now: Instant) {
        let mut observed = self.0.lock();
        if !observed.records.is_empty() {
            observed.records.remove(&subject.key());
        }
        if observed.trials.is_empty() {
            return;
        }
        if let Some(running) = observed.trials.get_mut(&subject.digest) {
            running.calls += 1;
            running.served.insert(subject.tenant.clone());
            if running.calls >= options.calls || running.until <= now {
                observed.trials.remove(&subject.digest);
            }
        }
    }

    /// Counts a fault; the trial comes back when the version has failed it.
    pub(crate) fn faulted(
        &self,
        subject: &Subject,
        class: FaultClass,
        policy: &FailurePolicy,
        options: &RollbackOptions,
        now: Instant,
    ) -> Option<Trial> {
        if !counts(class) {
            return None;
        }
        let mut observed = self.0.lock();
        let record = observed.records.entry(subject.key()).or_default();
        record.consecutive += 1;
        if policy.quarantine_after > 0 && record.consecutive >= policy.quarantine_after {
            record.closed_until = Some(now + pause(policy));
        }
        let running = observed.trials.get_mut(&subject.digest)?;
        running.calls += 1;
        if options.classes.contains(&class) {
            running.faults += 1;
            running.faulting.insert(subject.tenant.clone());
        }
        let failed = running.is_failed(options) && running.until > now;
        if failed || running.calls >= options.calls || running.until <= now {
            return observed.trials.remove(&subject.digest).filter(|_| failed).map(|running| running.trial);
        }
        None
    }

    /// An operator's word that the version may be called again.
    pub(crate) fn release(&self, digest: &Digest) -> bool {
        let mut observed = self.0.lock();
        let closed = observed.records.iter().any(|((of, _), record)| of == digest && record.closed_until.is_some());
        observed.records.retain(|(of, _), _| of != digest);
        closed
    }

    /// Time until the version is called again, for whoever waits longest.
    pub(crate) fn quarantined(&self, digest: &Digest, now: Instant) -> Option<Duration> {
        let observed = self.0.lock();
        let of_digest = observed.records.iter().filter(|((of, _), _)| of == digest);
        of_digest.filter_map(|(_, record)| record.closed_until?.checked_duration_since(now)).max()
    }

    pub(crate) fn forget(&self, digest: &Digest) {
        let mut observed = self.0.lock();
        observed.records.retain(|(of, _), _| of != digest);
        observed.trials.remove(digest);
    }
}

fn pause(policy: &FailurePolicy) -> Duration {
    Duration::from_secs(u64::from(policy.quarantine_secs.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> FailurePolicy {
        FailurePolicy { quarantine_after: 3, quarantine_secs: 10, rollback: true }
    }

    fn subject(tenant: &str, shared: bool) -> Subject {
        Subject { digest: Digest::of(b"x"), tenant: Tenant::new(tenant).expect("valid"), shared }
    }

    fn own() -> Subject {
        subject("acme", false)
    }

    fn trial() -> Trial {
        Trial {
            path: PluginPath::new("acme/a").expect("valid"),
            channel: ChannelName::stable(),
            version: Version::new(2, 0, 0),
            previous: Version::new(1, 0, 0),
        }
    }

    #[test]
    fn faults_in_a_row_close_a_version_then_one_call_probes_it() {
        let (health, digest, options, start) = (Health::default(), own(), RollbackOptions::default(), Instant::now());
        for _ in 0..3 {
            assert_eq!(health.admit(&digest, &policy(), start), Admission::Go);
            health.faulted(&digest, FaultClass::Trap, &policy(), &options, start);
        }
        assert!(matches!(health.admit(&digest, &policy(), start), Admission::Closed(_)));
        let later = start + Duration::from_secs(11);
        assert_eq!(health.admit(&digest, &policy(), later), Admission::Go);
        assert!(matches!(health.admit(&digest, &policy(), later), Admission::Closed(_)), "only one call probes");
        health.succeeded(&digest, &options, later);
        assert_eq!(health.admit(&digest, &policy(), later), Admission::Go);
    }

    #[test]
    fn a_refusal_is_no_fault_of_the_component() {
        let (health, digest, options, now) = (Health::default(), own(), RollbackOptions::default(), Instant::now());
        for _ in 0..10 {
            health.faulted(&digest, FaultClass::Denied, &policy(), &options, now);
        }
        assert_eq!(health.admit(&digest, &policy(), now), Admission::Go);
    }

    #[test]
    fn too_many_faults_during_the_trial_end_it_once() {
        let (health, digest, now) = (Health::default(), own(), Instant::now());
        let options = RollbackOptions { max_failures: 2, ..RollbackOptions::default() };
        health.begin_trial(digest.digest, trial(), &options, now);
        assert_eq!(health.faulted(&digest, FaultClass::Trap, &policy(), &options, now), None);
        health.succeeded(&digest, &options, now);
        assert_eq!(health.faulted(&digest, FaultClass::Quota, &policy(), &options, now), None, "not a listed class");
        assert_eq!(health.faulted(&digest, FaultClass::Timeout, &policy(), &options, now), Some(trial()));
        assert_eq!(health.faulted(&digest, FaultClass::Trap, &policy(), &options, now), None, "it is over");
    }

    #[test]
    fn a_version_that_served_its_trial_is_never_rolled_back() {
        let (health, digest, now) = (Health::default(), own(), Instant::now());
        let options = RollbackOptions { calls: 5, max_failures: 1, ..RollbackOptions::default() };
        health.begin_trial(digest.digest, trial(), &options, now);
        for _ in 0..5 {
            health.succeeded(&digest, &options, now);
        }
        assert_eq!(health.faulted(&digest, FaultClass::Trap, &policy(), &options, now), None);
    }

    #[test]
    fn one_tenant_cannot_take_what_is_shared_from_another() {
        let (health, now) = (Health::default(), Instant::now());
        let options = RollbackOptions { max_failures: 3, ..RollbackOptions::default() };
        let (bad, good) = (subject("bad", true), subject("good", true));
        health.begin_trial(bad.digest, trial(), &options, now);
        health.succeeded(&good, &options, now);
        for _ in 0..6 {
            assert_eq!(
                health.faulted(&bad, FaultClass::Trap, &policy(), &options, now),
                None,
                "others are served well"
            );
        }
        assert!(matches!(health.admit(&bad, &policy(), now), Admission::Closed(_)));
        assert_eq!(health.admit(&good, &policy(), now), Admission::Go);
        assert_eq!(
            health.faulted(&good, FaultClass::Trap, &policy(), &options, now),
            Some(trial()),
            "now it is everybody"
        );
    }
}
