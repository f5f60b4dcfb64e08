//! The direction of dependencies, as a table. A crate may use what its row says and nothing else of ours, and a library
//! that decides how something is done is known to one crate only. Test and build dependencies count too: what a test
//! links, its author will soon use.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cargo_metadata::MetadataCommand;

/// Each crate of the native workspace and those it may depend on.
const ALLOWED: &[(&str, &[&str])] = &[
    ("noetl-contract", &[]),
    ("noetl-flow", &[]),
    ("noetl-scrub", &["noetl-contract"]),
    ("noetl-sdk", &[]),
    ("noetl-store", &["noetl-contract"]),
    ("noetl-registry", &["noetl-contract", "noetl-store"]),
    ("noetl-guest-build", &["noetl-contract"]),
    ("noetl-host", &["noetl-contract", "noetl-scrub", "noetl-store"]),
    ("noetl-dispatch", &["noetl-contract", "noetl-store", "noetl-registry", "noetl-host", "noetl-scrub"]),
    ("noetl-http", &["noetl-contract", "noetl-store", "noetl-registry", "noetl-host", "noetl-scrub", "noetl-dispatch"]),
    (
        "noetl",
        &[
            "noetl-contract",
            "noetl-flow",
            "noetl-store",
            "noetl-registry",
            "noetl-guest-build",
            "noetl-host",
            "noetl-scrub",
            "noetl-dispatch",
            "noetl-http",
        ],
    ),
    // Its private Postgres is that of the tests.
    (
        "noetl-bench",
        &["noetl-contract", "noetl-store", "noetl-registry", "noetl-host", "noetl-dispatch", "noetl-tests"],
    ),
    ("noetl-tests", &["noetl-contract", "noetl-flow", "noetl-store"]),
    ("xtask", &["noetl-contract", "noetl-guest-build"]),
];

/// Libraries, by the start of their name, and the only crates that may know them. The bench measures the bare
/// runtime beside the host, and a bare SQL driver, which nothing else has, beside the tool.
const OWNED: &[(&str, &[&str])] = &[
    ("wasmtime", &["noetl-host", "noetl-bench"]),
    ("rusqlite", &["noetl-store"]),
    ("postgres-protocol", &["noetl-store"]),
    ("sqlx", &["noetl-bench"]),
    ("async-nats", &["noetl-store"]),
    ("axum", &["noetl-http"]),
];

/// The kernel is these and stays these: what else is needed is a component or a driver.
const KERNEL: [&str; 4] = ["dispatch", "host", "http", "scrub"];

/// A crate of the workspace with the names of all its direct dependencies.
type Edges = BTreeMap<String, BTreeSet<String>>;

fn edges_of_this_workspace() -> Edges {
    let metadata =
        MetadataCommand::new().manifest_path(root().join("Cargo.toml")).no_deps().exec().expect("cargo metadata");
    let dependencies = |package: &cargo_metadata::Package| {
        package.dependencies.iter().map(|dependency| dependency.name.clone()).collect::<BTreeSet<_>>()
    };
    metadata.packages.iter().map(|package| (package.name.to_string(), dependencies(package))).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests is a folder of the project")
}

/// One line for each edge that the tables do not allow.
fn wrong_edges(edges: &Edges) -> Vec<String> {
    let table: BTreeMap<_, _> = ALLOWED.iter().copied().collect();
    let mut wrong = Vec::new();
    for (from, dependencies) in edges {
        let Some(allowed) = table.get(from.as_str()) else {
            wrong.push(format!("{from} is not in the table: add a line to the table in tests/tests/arch.rs"));
            continue;
        };
        for to in dependencies {
            if edges.contains_key(to) && !allowed.contains(&to.as_str()) {
                wrong.push(format!("{from} must not depend on {to}"));
            }
            for (library, owners) in OWNED {
                if to.starts_with(library) && !owners.contains(&from.as_str()) {
                    wrong.push(format!("{from} must not depend on {to}: only {} may", owners.join(" and ")));
                }
            }
        }
    }
    wrong
}

#[test]
fn dependencies_point_one_way() {
    let wrong = wrong_edges(&edges_of_this_workspace());
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_line_of_the_table_is_a_crate() {
    let edges = edges_of_this_workspace();
    let gone: Vec<_> = ALLOWED.iter().map(|(name, _)| *name).filter(|name| !edges.contains_key(*name)).collect();
    assert!(gone.is_empty(), "in the table and not in the workspace: {}", gone.join(", "));
}

#[test]
fn a_wrong_edge_is_reported() {
    let edge = |from: &str, to: &[&str]| (from.to_owned(), to.iter().map(|name| (*name).to_owned()).collect());
    let edges = Edges::from([
        edge("noetl-contract", &["serde"]),
        edge("noetl-store", &["noetl-contract", "noetl-host", "rusqlite"]),
        edge("noetl-host", &["wasmtime", "wasmtime-wasi"]),
        edge("noetl-http", &["axum", "wasmtime"]),
        edge("noetl-stranger", &[]),
    ]);
    assert_eq!(
        wrong_edges(&edges),
        [
            "noetl-http must not depend on wasmtime: only noetl-host and noetl-bench may",
            "noetl-store must not depend on noetl-host",
            "noetl-stranger is not in the table: add a line to the table in tests/tests/arch.rs",
        ]
    );
}

#[test]
fn the_kernel_is_four_crates() {
    let entries = std::fs::read_dir(root().join("kernel")).expect("kernel/");
    let folders: BTreeSet<_> =
        entries.map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(folders, BTreeSet::from(KERNEL.map(str::to_owned)), "kernel/ holds these crates and nothing else");
}
