//! The list of packages that went into a component, inside of it.
//!
//! It is the section `.dep-v0`, as `cargo auditable` writes it and scanners of vulnerabilities read it. It follows from
//! the lock file, which decides the code anyway, so a build stays reproducible; and being inside, it is covered by the
//! digest and travels wherever the component does.

use std::collections::{BTreeMap, BTreeSet};

use auditable_serde::{DependencyKind, Source, VersionInfo};
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use noetl_contract::manifest::section;

const SECTION: &str = ".dep-v0";
/// A list longer than this is no list.
const MAX_BYTES: usize = 8 << 20;
/// Small rather than fast: it is done once a build.
const COMPRESSION: u8 = 9;

/// A package as Cargo describes it.
#[derive(Debug, Clone)]
pub(crate) struct Package {
    pub id: String,
    pub name: String,
    pub version: String,
    /// None for a folder on this machine.
    pub source: Option<String>,
    pub edges: Vec<Edge>,
}

#[derive(Debug, Clone)]
pub(crate) struct Edge {
    pub to: String,
    /// False for what only a build script or a macro needs.
    pub at_run_time: bool,
}

/// The root, first, and everything it is built from.
pub(crate) fn reached(root: &str, packages: Vec<Package>) -> Vec<Package> {
    let by_id: BTreeMap<&str, &Package> = packages.iter().map(|package| (package.id.as_str(), package)).collect();
    let ids = reach(root, &by_id, |_| true);
    let (mut root_first, others): (Vec<_>, Vec<_>) =
        packages.iter().filter(|package| ids.contains(package.id.as_str())).cloned().partition(|it| it.id == root);
    root_first.extend(others);
    root_first
}

fn reach<'a>(
    root: &'a str,
    by_id: &BTreeMap<&'a str, &'a Package>,
    takes: impl Fn(&Edge) -> bool,
) -> BTreeSet<&'a str> {
    let mut ids = BTreeSet::from([root]);
    let mut open = vec![root];
    while let Some(id) = open.pop() {
        let edges = by_id.get(id).into_iter().flat_map(|package| &package.edges);
        open.extend(edges.filter(|edge| takes(edge)).map(|edge| edge.to.as_str()).filter(|to| ids.insert(to)));
    }
    ids
}

/// The component with the list inside. `packages` has its root first.
pub(crate) fn embed(component: &[u8], packages: &[Package]) -> Vec<u8> {
    let list = serde_json::to_vec(&info(packages)).expect("names, versions and numbers");
    section::append(component, SECTION, &compress_to_vec_zlib(&list, COMPRESSION))
}

fn info(packages: &[Package]) -> VersionInfo {
    let by_id: BTreeMap<&str, &Package> = packages.iter().map(|package| (package.id.as_str(), package)).collect();
    let root = packages.first().map(|package| package.id.as_str()).unwrap_or_default();
    let at_run_time = reach(root, &by_id, |edge| edge.at_run_time);
    // Ids hold the paths of this machine's folders; names and versions do not.
    let mut sorted: Vec<&Package> = packages.iter().collect();
    sorted.sort_by(|a, b| (&a.name, &a.version, &a.source).cmp(&(&b.name, &b.version, &b.source)));
    let places: BTreeMap<&str, usize> =
        sorted.iter().enumerate().map(|(place, package)| (package.id.as_str(), place)).collect();
    let packages = sorted.iter().map(|package| {
        let edges: BTreeSet<usize> =
            package.edges.iter().filter_map(|edge| places.get(edge.to.as_str()).copied()).collect();
        auditable_serde::Package {
            name: package.name.clone(),
            version: package.version.parse().unwrap_or(semver::Version::new(0, 0, 0)),
            source: source(package.source.as_deref()),
            kind: match at_run_time.contains(package.id.as_str()) {
                true => DependencyKind::Runtime,
                false => DependencyKind::Build,
            },
            dependencies: edges.into_iter().collect(),
            root: package.id == root,
        }
    });
    VersionInfo { packages: packages.collect(), format: 0 }
}

fn source(cargo: Option<&str>) -> Source {
    match cargo {
        None => Source::Local,
        Some(text)
            if text.contains("//github.com/rust-lang/crates.io-index") || text.contains("//index.crates.io/") =>
        {
            Source::CratesIo
        }
        Some(text) if text.starts_with("git+") => Source::Git,
        Some(_) => Source::Registry,
    }
}

/// What a component says it is made of; none when it says nothing, an error when it cannot be read.
pub fn read(component: &[u8]) -> Result<Option<VersionInfo>, String> {
    let Some(packed) = section::find(component, SECTION).map_err(|error| error.to_string())? else { return Ok(None) };
    let list =
        decompress_to_vec_zlib_with_limit(&packed, MAX_BYTES).map_err(|error| format!("`{SECTION}`: {error}"))?;
    let text = String::from_utf8(list).map_err(|error| format!("`{SECTION}`: {error}"))?;
    text.parse().map(Some).map_err(|error| format!("`{SECTION}`: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, source: Option<&str>, edges: &[(&str, bool)]) -> Package {
        let edges = edges.iter().map(|(to, at_run_time)| Edge { to: (*to).to_owned(), at_run_time: *at_run_time });
        Package {
            id: name.to_owned(),
            name: name.to_owned(),
            version: "1.2.3".to_owned(),
            source: source.map(str::to_owned),
            edges: edges.collect(),
        }
    }

    #[test]
    fn a_component_says_what_it_is_made_of_and_nothing_else() {
        let index = Some("registry+https://github.com/rust-lang/crates.io-index");
        let all = vec![
            package("serde", index, &[]),
            package("plugin", None, &[("serde", true), ("cc", false)]),
            package("cc", Some("git+https://example.com/cc"), &[("serde", true)]),
            package("stranger", index, &[]),
        ];
        let component = embed(b"\0asm\x0d\0\x01\0", &reached("plugin", all));
        let info = read(&component).expect("reads").expect("is there");
        let names: Vec<_> = info.packages.iter().map(|it| (it.name.as_str(), it.kind, it.root)).collect();
        let (run, build) = (DependencyKind::Runtime, DependencyKind::Build);
        assert_eq!(names, [("cc", build, false), ("plugin", run, true), ("serde", run, false)]);
        assert_eq!(info.packages[1].dependencies, [0, 2]);
        assert_eq!(info.packages[2].source, Source::CratesIo);
    }

    #[test]
    fn a_component_without_a_list_and_a_broken_list_are_told_apart() {
        let bare = b"\0asm\x0d\0\x01\0";
        assert_eq!(read(bare).expect("reads"), None);
        assert!(read(&section::append(bare, SECTION, b"not zlib")).is_err());
    }
}
