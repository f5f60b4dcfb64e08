//! Random rows in random batches against a model that filters a plain list.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const TENANTS: [&str; 2] = ["acme", "other"];
const PATHS: [&str; 5] = ["orders", "orders/a", "orders/b", "orders\u{7f}", "returns"];
const STATUSES: [&str; 4] = ["RUNNING", "PARKED", "COMPLETED", "FAILED"];

#[derive(Debug, Clone)]
enum Step {
    Write {
        execution: u64,
        version: u64,
        status: Option<usize>,
        path: Option<usize>,
        parent: Option<u64>,
        at: Option<u64>,
    },
    Flush,
    Restart,
    Delete {
        execution: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    use proptest::option::of;
    prop_oneof![
        12 => (1..40_u64, 1..8_u64, of(0..4_usize), of(0..5_usize), of(1..4_u64), of(1..30_u64)).prop_map(
            |(execution, version, status, path, parent, at)| Step::Write { execution, version, status, path, parent, at }
        ),
        3 => Just(Step::Flush),
        1 => Just(Step::Restart),
        1 => (1..40_u64).prop_map(|execution| Step::Delete { execution }),
    ]
}

fn query() -> impl Strategy<Value = ListQuery> {
    use proptest::option::of;
    let path = prop_oneof![
        (0..5_usize).prop_map(|path| PathFilter::Is(PATHS[path].to_owned())),
        proptest::sample::select(vec!["", "o", "orders", "orders/", "zzz"])
            .prop_map(|prefix| PathFilter::StartsWith(prefix.to_owned())),
    ];
    let status = proptest::sample::select(vec!["RUNNING", "PARKED", "COMPLETED", "FAILED", "never"]);
    let tenant = proptest::sample::select(vec!["acme", "other", "nobody"]);
    let times = (of(0..35_u64), of(0..35_u64));
    (of(tenant), of(path), of(status), of(1..4_u64), times, 1..7_usize).prop_map(
        |(tenant, path, status, parent, (since_ms, until_ms), size)| ListQuery {
            tenant: tenant.map(str::to_owned),
            path,
            status: status.map(str::to_owned),
            parent,
            since_ms,
            until_ms,
            size,
            cursor: None,
        },
    )
}

fn row(execution: u64) -> ExecutionRow {
    ExecutionRow { execution, tenant: TENANTS[execution as usize % 2].to_owned(), ..ExecutionRow::default() }
}

#[derive(Default)]
struct Model {
    rows: BTreeMap<u64, ExecutionRow>,
    /// Versions when the batch that is being gathered began.
    before: BTreeMap<u64, u64>,
}

impl Model {
    /// Answers whether the row is fresh.
    fn write(&mut self, newer: &ExecutionRow) -> bool {
        let known = self.rows.get(&newer.execution);
        if self.before.get(&newer.execution).is_some_and(|before| newer.version <= *before)
            || known.is_some_and(|known| newer.version < known.version)
        {
            return false;
        }
        let held = self.rows.entry(newer.execution).or_insert_with(|| row(newer.execution));
        held.version = newer.version;
        held.path = newer.path.clone().or(held.path.take());
        held.parent = newer.parent.or(held.parent);
        held.started_ms = newer.started_ms.or(held.started_ms);
        if !held.status.as_deref().is_some_and(is_terminal) {
            held.status = newer.status.clone().or(held.status.take());
        }
        true
    }

    fn flushed(&mut self) {
        self.before = self.rows.iter().map(|(execution, row)| (*execution, row.version)).collect();
    }

    fn list(&self, query: &ListQuery) -> Vec<ExecutionRow> {
        let started = |row: &ExecutionRow| row.started_ms.unwrap_or(0);
        let path = |row: &ExecutionRow| row.path.clone().unwrap_or_default();
        let mut rows: Vec<_> = self
            .rows
            .values()
            .filter(|row| {
                query.tenant.as_ref().is_none_or(|tenant| row.tenant == *tenant)
                    && query.status.as_ref().is_none_or(|status| row.status.as_ref() == Some(status))
                    && query.parent.is_none_or(|parent| row.parent == Some(parent))
                    && query.since_ms.is_none_or(|since| started(row) >= since)
                    && query.until_ms.is_none_or(|until| started(row) <= until)
                    && query.path.as_ref().is_none_or(|filter| match filter {
                        PathFilter::Is(wanted) => path(row) == *wanted,
                        PathFilter::StartsWith(prefix) => path(row).starts_with(prefix),
                    })
            })
            .cloned()
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse((started(row), row.execution)));
        rows
    }

    fn counts(&self) -> Vec<(String, u64)> {
        let mut counts = BTreeMap::new();
        for row in self.rows.values() {
            *counts.entry(row.status.clone().unwrap_or_default()).or_default() += 1;
        }
        counts.into_iter().collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn every_list_is_what_a_filter_over_all_rows_gives(
        steps in proptest::collection::vec(step(), 1..120),
        queries in proptest::collection::vec(query(), 20),
    ) {
        let place = Place::new();
        let mut projections = place.open();
        let (mut model, mut batch, mut cursor, mut fresh) = (Model::default(), Vec::new(), 0, 0);
        for step in steps.iter().chain([&Step::Flush]) {
            if let Step::Write { execution, version, status, path, parent, at } = step {
                let row = ExecutionRow {
                    version: *version,
                    status: status.map(|status| STATUSES[status].to_owned()),
                    path: path.map(|path| PATHS[path].to_owned()),
                    parent: *parent,
                    started_ms: *at,
                    ..row(*execution)
                };
                fresh += u64::from(model.write(&row));
                batch.push(Change::Execution(row));
                continue;
            }
            cursor += 1;
            let stale = batch.len() as u64 - fresh;
            let applied = projections.apply(std::mem::take(&mut batch), &[], cursor).expect("applied");
            prop_assert_eq!(applied, Applied { rows: std::mem::take(&mut fresh), stale });
            if let Step::Delete { execution } = step {
                model.rows.remove(execution);
                cursor += 1;
                projections.apply(vec![Change::Deleted(*execution)], &[], cursor).expect("deleted");
            }
            model.flushed();
            if matches!(step, Step::Restart) {
                drop(projections);
                projections = place.open();
                prop_assert_eq!(projections.cursor(), cursor);
            }
            prop_assert_eq!(projections.counts_by_status(None).expect("readable"), model.counts());
        }
        for query in &queries {
            prop_assert_eq!(all(&projections, query), model.list(query), "{:?}", query);
        }
    }
}
