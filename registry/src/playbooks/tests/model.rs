//! Random changes against a model that knows nothing but what was acknowledged.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const PATHS: [&str; 3] = ["orders", "orders/a", "system/s"];
const TENANTS: [&str; 2] = ["acme", "other"];
const TEXTS: [&str; 3] = ["one", "two", "three"];

#[derive(Debug, Clone)]
enum Step {
    Register { tenant: usize, path: usize, text: usize },
    Archive { tenant: usize, path: usize, version: Option<u32> },
    Restore { tenant: usize, path: usize, version: Option<u32> },
    Delete { tenant: usize, path: usize, version: Option<u32> },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let place = || (0..2_usize, 0..3_usize);
    let one = || (place(), proptest::option::of(1..6_u32));
    prop_oneof![
        5 => (place(), 0..3_usize).prop_map(|((tenant, path), text)| Step::Register { tenant, path, text }),
        2 => one().prop_map(|((tenant, path), version)| Step::Archive { tenant, path, version }),
        2 => one().prop_map(|((tenant, path), version)| Step::Restore { tenant, path, version }),
        1 => one().prop_map(|((tenant, path), version)| Step::Delete { tenant, path, version }),
        1 => Just(Step::Restart),
    ]
}

/// Text and whether it is archived, of each version that is left.
#[derive(Debug, Default)]
struct Known {
    versions: BTreeMap<u32, (usize, bool)>,
    last: u32,
}

impl Known {
    fn newest(&self) -> Option<(u32, usize)> {
        self.versions.iter().rev().find(|(_, (_, archived))| !archived).map(|(version, (text, _))| (*version, *text))
    }

    /// Versions a change names, or none if that is an error.
    fn chosen(&self, version: Option<u32>) -> Option<Vec<u32>> {
        let all: Vec<u32> = self.versions.keys().copied().collect();
        match version {
            Some(version) => self.versions.contains_key(&version).then(|| vec![version]),
            None => Some(all).filter(|all| !all.is_empty()),
        }
    }
}

/// By owner and path.
type Model = BTreeMap<(usize, usize), Known>;

/// All tenants share the last path.
fn key(tenant: usize, path: usize) -> (usize, usize) {
    if path == 2 { (0, path) } else { (tenant, path) }
}

async fn run(bench: &Bench, model: &mut Model, step: &Step) {
    let numbers = |ids: Vec<CatalogId>| ids.into_iter().map(|id| id.version).collect::<Vec<_>>();
    let place = |who: usize, at: usize| (tenant(TENANTS[who]), path(PATHS[at]));
    match *step {
        Step::Register { tenant: who, path: at, text } => {
            let known = model.entry(key(who, at)).or_default();
            let registered = bench.register(TENANTS[who], PATHS[at], TEXTS[text]).await.expect("registers");
            let same = known.newest().filter(|(_, newest)| *newest == text);
            let expected = same.map_or((known.last + 1, true), |(version, _)| (version, false));
            assert_eq!((registered.entry.version, registered.created), expected);
            if registered.created {
                known.last += 1;
                known.versions.insert(known.last, (text, false));
            }
        }
        Step::Archive { tenant: who, path: at, version } | Step::Restore { tenant: who, path: at, version } => {
            let (owner, name) = place(who, at);
            let archive = matches!(step, Step::Archive { .. });
            let outcome = if archive {
                bench.playbooks.archive(&admin(), &owner, &name, version).await
            } else {
                bench.playbooks.restore(&admin(), &owner, &name, version).await
            };
            let known = model.entry(key(who, at)).or_default();
            let mut chosen = known.chosen(version);
            for chosen in chosen.iter_mut() {
                chosen.retain(|version| known.versions[version].1 != archive);
                chosen.iter().for_each(|version| known.versions.get_mut(version).expect("chosen").1 = archive);
            }
            assert_eq!(outcome.ok().map(numbers), chosen);
        }
        Step::Delete { tenant: who, path: at, version } => {
            let (owner, name) = place(who, at);
            let outcome = bench.playbooks.delete(&admin(), &owner, &name, version).await;
            let known = model.entry(key(who, at)).or_default();
            let chosen = known.chosen(version);
            known.versions.retain(|version, _| !chosen.iter().flatten().any(|chosen| chosen == version));
            assert_eq!(outcome.ok().map(numbers), chosen);
        }
        Step::Restart => {}
    }
}

fn agrees(bench: &Bench, model: &Model) {
    for (who, name) in TENANTS.iter().enumerate() {
        for (at, place) in PATHS.iter().enumerate() {
            let known = model.get(&key(who, at));
            let text = |(version, text): (u32, usize)| (version, Digest::of(TEXTS[text].as_bytes()));
            let means = |version| {
                let entry = bench.playbooks.resolve(&tenant(name), &path(place), version)?;
                Some((entry.version, entry.digest))
            };
            assert_eq!(means(None), known.and_then(Known::newest).map(text));
            for version in 1..6 {
                let left = known.and_then(|known| known.versions.get(&version)).map(|(of, _)| text((version, *of)));
                assert_eq!(means(Some(version)), left);
            }
            let versions: Vec<(u32, bool)> = bench
                .playbooks
                .versions(&tenant(name), &path(place))
                .iter()
                .map(|entry| (entry.version, entry.archived))
                .collect();
            let left = known.into_iter().flat_map(|known| &known.versions);
            assert_eq!(versions, left.map(|(version, (_, archived))| (*version, *archived)).collect::<Vec<_>>());
        }
        let listed = bench.playbooks.list(&tenant(name), &PlaybookFilter::default(), None, 100).entries;
        let listed: Vec<_> = listed.iter().map(|entry| (entry.path.to_string(), entry.version)).collect();
        let newest = |at: usize| Some((PATHS[at].to_owned(), model.get(&key(who, at))?.newest()?.0));
        assert_eq!(listed, (0..PATHS.len()).filter_map(newest).collect::<Vec<_>>());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn what_was_acknowledged_is_served_and_a_fold_of_the_log_gives_the_same_state(
        steps in proptest::collection::vec(step(), 1..30)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let mut bench = Bench::new();
            let mut model = Model::new();
            for step in steps.iter().chain([&Step::Restart]) {
                run(&bench, &mut model, step).await;
                agrees(&bench, &model);
                if matches!(step, Step::Restart) {
                    let live = bench.playbooks.ledger.state();
                    bench = bench.reopen();
                    assert_eq!(*bench.playbooks.ledger.state(), *live);
                    agrees(&bench, &model);
                }
            }
        });
    }
}
