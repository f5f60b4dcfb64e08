//! The contract itself: everything resolves, every function has a class, nothing released changes.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::ids::Digest;

fn text_of(package: &str) -> &'static str {
    SOURCES.iter().find(|source| source.package == package).expect("a package of ours").text
}

/// The text with one piece replaced; fails when the piece is not there, so that no control goes stale.
fn edited(package: &str, from: &str, to: &str) -> String {
    let text = text_of(package);
    assert!(text.contains(from), "{package} no longer has {from:?}");
    text.replacen(from, to, 1)
}

#[test]
fn every_package_states_the_name_and_version_of_its_folder() {
    for source in SOURCES {
        let line = format!("\npackage {}@{};\n", source.package, source.version);
        assert!(source.text.contains(&line), "{} does not say {line:?}", source.file);
    }
    assert_eq!(resolve().packages.len(), SOURCES.len());
}

#[test]
fn every_version_folder_is_compiled_in() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut on_disk = BTreeSet::new();
    for package in std::fs::read_dir(root).expect("the folder wit").flatten() {
        let package = package.file_name().into_string().expect("a plain name");
        if !root.join(&package).is_dir() || package == "src" {
            continue;
        }
        for version in std::fs::read_dir(root.join(&package)).expect("a package").flatten() {
            let version = version.file_name().into_string().expect("a plain name");
            on_disk.insert(format!("{package}/{version}/{package}.wit"));
        }
    }
    let compiled: BTreeSet<String> = SOURCES.iter().map(|source| source.file.to_owned()).collect();
    assert_eq!(on_disk, compiled);
}

#[test]
fn every_capability_has_a_package_and_every_package_is_a_capability_or_the_worlds() {
    let capabilities: BTreeSet<&str> = Capability::ALL.iter().map(|capability| capability.package()).collect();
    let mut packages: BTreeSet<&str> = names().collect();
    for worlds in [WORLDS_PACKAGE, ENGINE_PACKAGE, INTERPRETER_PACKAGE, DESCRIBE_PACKAGE] {
        assert!(packages.remove(worlds), "{worlds}");
    }
    assert_eq!(packages, capabilities);
}

#[test]
fn every_function_of_every_capability_has_a_class() {
    let (functions, unclassed) = classify(resolve());
    assert!(unclassed.is_empty(), "without a class: {unclassed:?}");
    let covered: BTreeSet<Capability> = functions.iter().map(|function| function.capability).collect();
    assert_eq!(covered.len(), Capability::ALL.len(), "a capability has no function at all");
    let class = |name: &str| functions.iter().find(|found| found.function == name).map(|found| found.class);
    assert_eq!(class("get"), Some(Class::Read));
    assert_eq!(class("compare-and-swap"), Some(Class::Staged));
    assert_eq!(class("send"), Some(Class::External));
    assert_eq!(class("[method]payload.read"), Some(Class::Read));
}

#[test]
fn a_function_without_a_class_is_found() {
    let mut resolve = Resolve::default();
    let text = edited("noetl:clock", "/// class: read", "/// class: whatever");
    resolve.push_source("clock.wit", &text).expect("still WIT");
    assert_eq!(classify(&resolve).1, ["noetl:clock/clock@0.1.0: now"]);
}

#[test]
fn a_released_file_is_as_it_was_released() {
    let mut locked = 0;
    for line in LOCK.lines() {
        let (digest, file) = line.split_once("  ").expect("`<sha256>  <file>`");
        let source = SOURCES.iter().find(|source| source.file == file);
        let source = source.unwrap_or_else(|| panic!("{file} was released and is gone"));
        let actual = Digest::of(source.text.as_bytes()).hex();
        assert_eq!(actual, digest, "{file} is released: put the change into a new version folder");
        locked += 1;
    }
    assert!(locked > 0, "the lock is empty");
}

#[test]
fn a_newer_version_on_the_same_track_accepts_what_was_built_against_the_older() {
    let mut pairs = 0;
    for (at, newer) in SOURCES.iter().enumerate() {
        // Each is held against itself too, so that the check is known to run on every package.
        for older in SOURCES[..=at].iter().filter(|older| older.package == newer.package) {
            let version = |source: &Source| Version::parse(source.version).expect("semver");
            if same_track(&version(older), &version(newer)) {
                check_compatible(older.text, newer.text)
                    .unwrap_or_else(|error| panic!("{} -> {}: {error}", older.file, newer.file));
                pairs += 1;
            }
        }
    }
    assert!(pairs >= SOURCES.len());
}

#[test]
fn adding_a_function_is_compatible() {
    let more = edited("noetl:clock", "    monotonic:", "    resolution: func() -> u64;\n\n    monotonic:");
    assert_eq!(check_compatible(text_of("noetl:clock"), &more), Ok(()));
    // The other way round a function is taken away.
    let error = check_compatible(&more, text_of("noetl:clock")).expect_err("a function is gone");
    assert!(error.contains("interface `clock`"), "{error}");
}

#[test]
fn changing_a_released_shape_is_incompatible() {
    let changes = [
        ("noetl:kv", "get: func(key: string)", "get: func(key: u32)"),
        ("noetl:kv", "version: u64,", "version: u32,"),
        ("noetl:kv", "too-large(u64),", "too-large(u64),\n        full,"),
        ("noetl:log", "trace,", "tracing,"),
        ("noetl:payload", "size: func() -> u64;", "size: func() -> u32;"),
        ("noetl:http-client", "status: u16,", "status: u32,"),
        ("noetl:worlds", "export run: func(input: list<u8>)", "export run: func(input: string)"),
        ("noetl:worlds", "import noetl:kv/kv@0.1.0;", ""),
    ];
    for (package, from, to) in changes {
        let refused = check_compatible(text_of(package), &edited(package, from, to));
        assert!(refused.is_err(), "{package}: {from:?} -> {to:?} was taken for compatible");
    }
    let renamed = edited("noetl:random", "interface random {", "interface chance {");
    assert!(check_compatible(text_of("noetl:random"), &renamed).expect_err("gone").contains("is gone"));
}

#[test]
fn what_is_not_wit_is_an_error_and_not_a_crash() {
    assert!(check_compatible("nonsense", text_of("noetl:kv")).is_err());
    assert!(check_compatible(text_of("noetl:kv"), text_of("noetl:clock")).is_err());
}

#[test]
fn versions_on_one_track_are_those_semver_calls_compatible() {
    let same = |left: &str, right: &str| {
        same_track(&Version::parse(left).expect("semver"), &Version::parse(right).expect("semver"))
    };
    assert!(same("0.1.0", "0.1.7") && same("1.2.3", "1.9.0") && same("0.0.3", "0.0.3"));
    assert!(!same("0.1.0", "0.2.0") && !same("1.0.0", "2.0.0") && !same("0.0.3", "0.0.4") && !same("1.0.0", "0.1.0"));
    assert!(!same("1.0.0", "1.0.1-rc.1") && same("1.0.0-rc.1", "1.0.0-rc.1") && !same("1.0.0-rc.1", "1.0.0-rc.2"));
}

#[test]
fn the_worlds_of_the_manifest_are_the_worlds_of_the_contract() {
    for world in World::ALL {
        let exports = resolve().worlds[super::world(world)].exports.keys();
        let names: Vec<String> = exports.map(|key| resolve().name_world_key(key)).collect();
        assert_eq!(names, world.exports());
    }
    let defined = |package| resolve().packages[newest(package).expect("compiled in")].worlds.len();
    let packages = [WORLDS_PACKAGE, ENGINE_PACKAGE, INTERPRETER_PACKAGE];
    assert_eq!(packages.map(defined).iter().sum::<usize>(), World::ALL.len());
}
