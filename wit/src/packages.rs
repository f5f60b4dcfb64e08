//! The WIT packages, compiled in, and what can be learned from them.
//!
//! The text here is the text guests are built from and the host's bindings are made from, so the three
//! cannot disagree. A released package is frozen: `wit.lock` holds the sha256 of its file, and a change
//! goes into a new version folder that [`check_compatible`] holds against the one before.

use std::sync::LazyLock;

use wit_parser::{InterfaceId, PackageId, Resolve, UnresolvedPackageGroup, WorldId};

use crate::ids::Version;
use crate::manifest::World;
use crate::rings::Capability;

/// One version of one package.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    /// Without a version: `noetl:kv`.
    pub package: &'static str,
    pub version: &'static str,
    /// Below the folder `wit/`.
    pub file: &'static str,
    pub text: &'static str,
}

macro_rules! sources {
    ($($name:literal $version:literal),* $(,)?) => {
        &[$(Source {
            package: concat!("noetl:", $name),
            version: $version,
            file: concat!($name, "/", $version, "/", $name, ".wit"),
            text: include_str!(concat!("../", $name, "/", $version, "/", $name, ".wit")),
        }),*]
    };
}

/// All packages; one that another uses comes before it, older versions before newer ones.
pub const SOURCES: &[Source] = sources![
    "log" "0.1.0",
    "metrics" "0.1.0",
    "clock" "0.1.0",
    "random" "0.1.0",
    "kv" "0.1.0",
    "payload" "0.1.0",
    "objects" "0.1.0",
    "http-client" "0.1.0",
    "secrets" "0.1.0",
    "files" "0.1.0",
    "sql" "0.1.0",
    "nats" "0.1.0",
    "process" "0.1.0",
    "worlds" "0.1.0",
    "describe" "0.1.0",
    "interpreter" "0.1.0",
    "engine" "0.1.0",
];

/// The sha256 of every released file, in the form `sha256sum --check` reads.
pub const LOCK: &str = include_str!("../wit.lock");

/// A package that is not a capability: worlds and what is linked in every ring.
pub const WORLDS_PACKAGE: &str = "noetl:worlds";
/// The worlds of the engine's services, and the types they speak in.
pub const ENGINE_PACKAGE: &str = "noetl:engine";
/// What runs plugins that are source text.
pub const INTERPRETER_PACKAGE: &str = "noetl:interpreter";
/// What a component of any world may export besides: a word about itself.
pub const DESCRIBE_PACKAGE: &str = "noetl:describe";

/// Names of all packages, without versions, each once.
pub fn names() -> impl Iterator<Item = &'static str> {
    SOURCES
        .iter()
        .enumerate()
        .filter(|(at, source)| SOURCES[..*at].iter().all(|earlier| earlier.package != source.package))
        .map(|(_, source)| source.package)
}

/// Versions of a package that this host has, oldest first; empty for a package it does not know.
pub fn versions(package: &str) -> Vec<Version> {
    SOURCES
        .iter()
        .filter(|source| source.package == package)
        .map(|source| Version::parse(source.version).expect("version folders are compiled in and tested"))
        .collect()
}

/// Every package, resolved.
pub fn resolve() -> &'static Resolve {
    static RESOLVED: LazyLock<Resolve> = LazyLock::new(|| {
        let mut resolve = Resolve::default();
        for source in SOURCES {
            resolve.push_source(source.file, source.text).expect("the WIT packages are compiled in and tested");
        }
        resolve
    });
    &RESOLVED
}

/// The newest definition of a world.
pub fn world(world: World) -> WorldId {
    let newest = newest(world.package()).expect("the packages of worlds are compiled in");
    resolve().packages[newest].worlds[world.name()]
}

fn newest(package: &str) -> Option<PackageId> {
    let (namespace, name) = package.split_once(':')?;
    let packages = resolve().packages.iter();
    packages
        .filter(|(_, found)| found.name.namespace == namespace && found.name.name == name)
        .max_by_key(|(_, found)| found.name.version.clone())
        .map(|(id, _)| id)
}

/// What calling a function does to the world, as its documentation states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Answered at once, changes nothing that outlives the call.
    Read,
    /// Collected and applied only when the call succeeds.
    Staged,
    /// Acts on the outside at once, at least once.
    External,
}

/// One function of a capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    pub capability: Capability,
    /// With package and version: `noetl:kv/kv@0.1.0`.
    pub interface: String,
    /// As the linker knows it: `get`, `[method]payload.read`.
    pub function: String,
    pub class: Class,
}

/// Every function of every capability, in the order of the packages.
pub fn functions() -> &'static [Function] {
    static FUNCTIONS: LazyLock<Vec<Function>> = LazyLock::new(|| {
        let (functions, unclassed) = classify(resolve());
        assert!(unclassed.is_empty(), "functions without a class line in their documentation: {unclassed:?}");
        functions
    });
    &FUNCTIONS
}

/// The functions of all capabilities, and those whose documentation names no class.
fn classify(resolve: &Resolve) -> (Vec<Function>, Vec<String>) {
    let (mut functions, mut unclassed) = (Vec::new(), Vec::new());
    for (id, interface) in resolve.interfaces.iter() {
        let Some(name) = resolve.id_of(id) else { continue };
        let Some(capability) = Capability::of_import(&name) else { continue };
        for function in interface.functions.values() {
            match class_of(function.docs.contents.as_deref().unwrap_or_default()) {
                Some(class) => functions.push(Function {
                    capability,
                    interface: name.clone(),
                    function: function.name.clone(),
                    class,
                }),
                None => unclassed.push(format!("{name}: {}", function.name)),
            }
        }
    }
    (functions, unclassed)
}

fn class_of(docs: &str) -> Option<Class> {
    docs.lines().find_map(|line| match line.trim().strip_prefix("class:")?.trim() {
        "read" => Some(Class::Read),
        "staged" => Some(Class::Staged),
        "external" => Some(Class::External),
        _ => None,
    })
}

/// The interface of ours that serves an import: same package and interface name, a version the import is
/// compatible with by the rules of semver, the newest if there are several.
pub fn serving(package: &str, interface: &str, version: &Version) -> Option<(InterfaceId, Version)> {
    let (namespace, name) = package.split_once(':')?;
    let mut served = None;
    for (_, found) in resolve().packages.iter() {
        let Some(ours) = found.name.version.as_ref() else { continue };
        let same = found.name.namespace == namespace && found.name.name == name && same_track(ours, version);
        let Some(id) = found.interfaces.get(interface).filter(|_| same) else { continue };
        if served.as_ref().is_none_or(|(_, best)| best < ours) {
            served = Some((*id, ours.clone()));
        }
    }
    served
}

/// Whether semver calls two versions compatible: the linker matches imports by the same rule.
pub fn same_track(left: &Version, right: &Version) -> bool {
    if left.pre.is_empty() != right.pre.is_empty() || !left.pre.is_empty() {
        return left == right;
    }
    match (left.major, left.minor) {
        (0, 0) => left == right,
        (0, minor) => (right.major, right.minor) == (0, minor),
        (major, _) => right.major == major,
    }
}

/// Whether a component built against `old_text` runs on a host that has `new_text` in its place. Both are
/// the text of a whole package; packages they use are taken from [`SOURCES`].
pub fn check_compatible(old_text: &str, new_text: &str) -> Result<(), String> {
    let mut resolve = Resolve::default();
    // Versions are only names here (the check ignores them), and two packages of one name need two.
    let old = push_probed(&mut resolve, old_text, "0.0.0-old")?;
    let new = push_probed(&mut resolve, new_text, "0.0.0-new")?;
    let worlds: Vec<(String, WorldId)> =
        resolve.packages[old].worlds.iter().map(|(name, id)| (name.clone(), *id)).collect();
    for (name, old_world) in worlds {
        let Some(new_world) = resolve.packages[new].worlds.get(&name).copied() else {
            return Err(format!("{} is gone", described(&name)));
        };
        wit_component::semver_check(resolve.clone(), old_world, new_world)
            .map_err(|error| format!("{}: {error:#}", described(&name)))?;
    }
    Ok(())
}

const PROBE: &str = "noetl-compatibility-probe-";

fn described(world: &str) -> String {
    match world.strip_prefix(PROBE) {
        Some(interface) => format!("interface `{interface}`"),
        None => format!("world `{world}`"),
    }
}

/// Adds a package under a version of ours, with one world more for each interface, because only worlds can
/// be compared.
fn push_probed(resolve: &mut Resolve, text: &str, version: &str) -> Result<PackageId, String> {
    let parse =
        |text: &str| UnresolvedPackageGroup::parse("package.wit", text).map_err(|(map, error)| error.render(&map));
    let plain = parse(text)?;
    let mut probed = text.to_owned();
    for (_, interface) in plain.main.interfaces.iter() {
        if let Some(name) = &interface.name {
            probed.push_str(&format!("\nworld {PROBE}{name} {{ import {name}; }}\n"));
        }
    }
    let own = plain.main.name.clone();
    for source in SOURCES {
        let group = parse(source.text)?;
        let is_itself = (&group.main.name.namespace, &group.main.name.name) == (&own.namespace, &own.name);
        if is_itself || resolve.package_names.contains_key(&group.main.name) {
            continue;
        }
        // A package that uses the one under test cannot be resolved without it, and is not needed for it.
        let mut trial = resolve.clone();
        if trial.push_group(group).is_ok() {
            *resolve = trial;
        }
    }
    let mut group = parse(&probed)?;
    group.main.name.version = Some(Version::parse(version).map_err(|error| error.to_string())?);
    resolve.push_group(group).map_err(|error| error.to_string())
}

#[cfg(test)]
#[path = "packages_tests.rs"]
mod tests;
