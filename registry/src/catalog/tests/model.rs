//! Random changes against a model that knows nothing but what was acknowledged.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const PATHS: [&str; 3] = ["system/auth", "acme/system/auth", "acme/orders"];
const VERSIONS: [&str; 3] = ["1.0.0", "1.1.0", "2.0.0"];
const TENANTS: [&str; 2] = ["acme", "other"];
const CHANNELS: [&str; 2] = ["stable", "canary"];
const CONTENTS: [&str; 2] = ["left", "right"];
/// Compiled in, at a version nothing else uses.
const BUILTIN: (&str, &str) = ("system/auth", "0.1.0");

#[derive(Debug, Clone)]
enum Step {
    Push { path: usize, version: usize, content: usize, channel: usize },
    Move { path: usize, channel: usize, version: usize },
    Rollback { path: usize, channel: usize, to: Option<usize> },
    Pin { tenant: usize, path: usize, version: Option<usize> },
    Bind { tenant: usize, service: usize, to: Option<usize> },
    Delete { path: usize, version: usize },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let (path, number, channel, tenant) = (0..3usize, 0..3usize, 0..2usize, 0..2usize);
    prop_oneof![
        6 => (path.clone(), number.clone(), 0..2usize, channel.clone())
            .prop_map(|(path, version, content, channel)| Step::Push { path, version, content, channel }),
        2 => (path.clone(), channel.clone(), number.clone())
            .prop_map(|(path, channel, version)| Step::Move { path, channel, version }),
        3 => (path.clone(), channel, proptest::option::of(number.clone()))
            .prop_map(|(path, channel, to)| Step::Rollback { path, channel, to }),
        2 => (tenant.clone(), path.clone(), proptest::option::of(number.clone()))
            .prop_map(|(tenant, path, version)| Step::Pin { tenant, path, version }),
        2 => (tenant, path.clone(), proptest::option::of(path.clone()))
            .prop_map(|(tenant, service, to)| Step::Bind { tenant, service, to }),
        2 => (path, number).prop_map(|(path, version)| Step::Delete { path, version }),
        1 => Just(Step::Restart),
    ]
}

/// What was acknowledged.
#[derive(Debug, Default)]
struct Model {
    /// Never forgotten, deleted or not.
    digests: BTreeMap<(usize, usize), Digest>,
    live: std::collections::BTreeSet<(usize, usize)>,
    /// None is what is compiled in.
    channels: BTreeMap<(usize, usize), Option<usize>>,
    pins: BTreeMap<(usize, usize), usize>,
    bindings: BTreeMap<(usize, usize), usize>,
}

impl Model {
    fn moved(&mut self, path: usize, channel: usize, moved: &Moved) {
        let to = VERSIONS.iter().position(|version| moved.to.to_string() == *version);
        assert_eq!(to.is_none(), moved.embedded);
        self.channels.insert((path, channel), to);
    }

    /// The order of resolution, written down once more: pin, channel, embedded.
    fn unbound(&self, tenant: usize, path: usize, channel: usize) -> Option<(usize, &'static str, Source)> {
        if let Some(version) = self.pins.get(&(tenant, path)) {
            return Some((path, VERSIONS[*version], Source::Pin));
        }
        match self.channels.get(&(path, channel)) {
            Some(Some(version)) => Some((path, VERSIONS[*version], Source::Channel)),
            known => {
                let has_builtin = PATHS[path] == BUILTIN.0 && (known.is_some() || channel == 0);
                has_builtin.then_some((path, BUILTIN.1, Source::Embedded))
            }
        }
    }

    fn serves(&self, tenant: usize, service: usize, channel: usize) -> Option<(usize, &'static str, Source)> {
        let Some(to) = self.bindings.get(&(tenant, service)) else { return self.unbound(tenant, service, channel) };
        // All versions here are overridable and of one world, so a binding holds as long as both can serve.
        self.unbound(tenant, service, 0)?;
        self.unbound(tenant, *to, channel).map(|(path, version, _)| (path, version, Source::Binding))
    }
}

async fn run(bench: &Bench, model: &mut Model, step: &Step) {
    match step {
        Step::Push { path: at, version: number, content, channel } => {
            let manifest = manifest_with(PATHS[*at], VERSIONS[*number], "overridable = true");
            let mut new = bench.new_version(manifest, CONTENTS[*content]).await;
            new.channel = name(CHANNELS[*channel]);
            let digest = new.digest;
            let outcome = bench.push_as(&admin(), new).await;
            let taken = model.digests.get(&(*at, *number)).is_some_and(|existing| *existing != digest);
            assert_eq!(outcome.is_err(), taken, "{outcome:?}");
            if let Ok(outcome) = outcome {
                assert_eq!(outcome.created, model.live.insert((*at, *number)));
                model.digests.insert((*at, *number), digest);
                model.channels.insert((*at, *channel), Some(*number));
            }
        }
        Step::Move { path: at, channel, version: number } => {
            let (at_path, to) = (path(PATHS[*at]), version(VERSIONS[*number]));
            let moved = bench.catalog.move_channel(&admin(), &at_path, &name(CHANNELS[*channel]), &to, "").await;
            assert_eq!(moved.is_ok(), model.live.contains(&(*at, *number)), "{moved:?}");
            if let Ok(moved) = moved {
                model.moved(*at, *channel, &moved);
            }
        }
        Step::Rollback { path: at, channel, to } => {
            let (at_path, channel_name) = (path(PATHS[*at]), name(CHANNELS[*channel]));
            let to = to.map(|number| version(VERSIONS[number]));
            let promised = bench.catalog.previous_of(&at_path, &channel_name);
            let moved = bench.catalog.rollback(&admin(), &at_path, &channel_name, to.as_ref(), "").await;
            if let Ok(moved) = &moved {
                assert_eq!(Some(&moved.to), to.as_ref().or(promised.as_ref()));
                model.moved(*at, *channel, moved);
            }
            assert!(moved.is_ok() || to.is_some() || promised.is_none(), "{moved:?}");
        }
        Step::Pin { tenant: who, path: at, version: number } => {
            let to = number.map(|number| VERSIONS[number]);
            if bench.pin(TENANTS[*who], PATHS[*at], to).await.is_ok() {
                match number {
                    Some(number) => model.pins.insert((*who, *at), *number),
                    None => model.pins.remove(&(*who, *at)),
                };
            }
        }
        Step::Bind { tenant: who, service, to } => {
            if bench.bind(TENANTS[*who], PATHS[*service], to.map(|to| PATHS[to])).await.is_ok() {
                match to {
                    Some(to) => model.bindings.insert((*who, *service), *to),
                    None => model.bindings.remove(&(*who, *service)),
                };
            }
        }
        Step::Delete { path: at, version: number } => {
            let deleted =
                bench.catalog.delete_version(&admin(), &path(PATHS[*at]), &version(VERSIONS[*number]), "").await;
            if deleted.is_ok() {
                assert!(model.live.remove(&(*at, *number)));
                assert!(!model.channels.iter().any(|(key, to)| key.0 == *at && *to == Some(*number)));
                assert!(!model.pins.iter().any(|(key, to)| key.1 == *at && to == number));
            }
        }
        Step::Restart => {}
    }
}

fn agrees(bench: &Bench, model: &Model) {
    for (who, tenant_name) in TENANTS.iter().enumerate() {
        for (at, service) in PATHS.iter().enumerate() {
            for (on, channel_name) in CHANNELS.iter().enumerate() {
                let found = bench.serves_with(tenant_name, service, &channel(channel_name));
                let foreign = path(service).owner().is_some_and(|owner| owner != tenant(tenant_name));
                let wanted = model.serves(who, at, on).filter(|_| !foreign);
                let wanted = wanted.map(|(path, version, source)| (PATHS[path].to_owned(), version.to_owned(), source));
                assert_eq!(found.clone().ok(), wanted, "{tenant_name} {service} {channel_name}: {found:?} {model:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn what_was_acknowledged_is_served_and_a_fold_of_the_log_gives_the_same_state(
        steps in proptest::collection::vec(step(), 1..30)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let mut bench = Bench::with(vec![embedded(BUILTIN.0, BUILTIN.1)]);
            let mut model = Model::default();
            for step in &steps {
                run(&bench, &mut model, step).await;
                agrees(&bench, &model);
                if matches!(step, Step::Restart) {
                    let live = bench.catalog.ledger.state();
                    bench = bench.reopen();
                    assert_eq!(*bench.catalog.ledger.state(), *live);
                    agrees(&bench, &model);
                }
            }
            let live = bench.catalog.ledger.state();
            let bench = bench.reopen();
            assert_eq!(*bench.catalog.ledger.state(), *live);
            agrees(&bench, &model);
        });
    }
}
