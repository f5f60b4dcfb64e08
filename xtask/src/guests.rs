//! The guest components of this repository: which there are, and building those that changed.
//!
//! A folder with a `plugin.toml` under `plugins/`, `plugins/tools/` or `tests/guests/` is one component. A `variants.toml` in
//! it lists further ones made from the same crate, or the only ones if there is no `plugin.toml`:
//!
//! ```toml
//! greet-loud = { features = ["loud"], plugin = "plugin-loud.toml" }
//! ```
//!
//! A folder without a `Cargo.toml` is source text: it is packed as it is, and an interpreter runs it.
//!
//! System components are written to `<target>/guests/system/<path>.wasm`, with `__` for the `/` of the plugin's path, and
//! test guests to `<target>/guests/test/<name>.wasm`. Beside each lies the hash of everything it was made from; a component
//! is built when that hash is not the current one, so that a second run does nothing. A file is replaced in one step and only
//! by other bytes: an unchanged component does not make the binary that embeds it compile again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use noetl_contract::{Manifest, inspect, source};
use noetl_guest_build::{BuildRequest, Toolchain};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use walkdir::WalkDir;

use crate::interpreters;
use crate::project::Project;
use crate::say::Step;

/// Guest workspaces, the folders in them that hold guest folders, and where their output goes.
const PLACES: [(&str, &[&str], Kind); 2] =
    [("plugins", &["", "tools"], Kind::System), ("tests/guests", &[""], Kind::Test)];

/// What every guest is made from besides its own workspace.
const COMMON: [&str; 3] = ["sdk/rust", "sdk/build/src", "wit"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    System,
    Test,
}

/// One component to be built.
#[derive(Debug)]
struct Guest {
    /// File name of the output, without `.wasm`.
    name: String,
    kind: Kind,
    workspace: PathBuf,
    crate_dir: PathBuf,
    manifest: PathBuf,
    features: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Variant {
    #[serde(default)]
    features: Vec<String>,
    plugin: Option<String>,
}

pub fn build_all(project: &Project) -> Result<()> {
    let guests = find(&project.root)?;
    let toolchain = Toolchain::find()?;
    let mut changed = Vec::new();
    for guest in &guests {
        let inputs = inputs(guest, &project.root, &toolchain)?;
        let file = guest.output(project);
        let known = fs::read_to_string(stamp(&file)).unwrap_or_default();
        if known != inputs || !file.is_file() {
            changed.push((guest, file, inputs));
        }
    }
    remove_others(project, &guests)?;
    if changed.is_empty() {
        return Ok(());
    }
    let step = Step::start("building guest components");
    let total = changed.len();
    for (index, (guest, file, inputs)) in changed.into_iter().enumerate() {
        step.now(&format!("guest {} ({} of {total})", guest.name, index + 1));
        let component = guest.make(project, &toolchain).with_context(|| format!("build guest {}", guest.name))?;
        write(&file, &component)?;
        // Last, so that a crash before it leads to another build and not to a stale component.
        write(&stamp(&file), inputs.as_bytes())?;
    }
    step.end(&format!("{total} guest components built"));
    Ok(())
}

impl Guest {
    fn output(&self, project: &Project) -> PathBuf {
        project.guests().join(self.kind.folder()).join(format!("{}.wasm", self.name))
    }

    /// Whether it is text for an interpreter, and no crate.
    fn is_source(&self) -> bool {
        !self.crate_dir.join("Cargo.toml").is_file()
    }

    fn make(&self, project: &Project, toolchain: &Toolchain) -> Result<Vec<u8>> {
        if self.is_source() {
            let manifest = fs::read_to_string(&self.manifest)?;
            let packed = source::pack(&manifest, &noetl_guest_build::source::bundle(&self.crate_dir)?)?;
            let skew = inspect::inspect(&packed)?.skew;
            ensure!(skew.is_empty(), "{}", skew.join("\n"));
            return Ok(packed);
        }
        let request = BuildRequest {
            features: self.features.clone(),
            manifest: Some(self.manifest.clone()),
            source_root: Some(project.root.clone()),
            quiet: true,
            ..BuildRequest::new(&self.crate_dir)
        };
        Ok(toolchain.build(&request)?.component)
    }
}

impl Kind {
    fn folder(self) -> &'static str {
        match self {
            Kind::System => "system",
            Kind::Test => "test",
        }
    }
}

pub fn stamp(file: &Path) -> PathBuf {
    file.with_extension("inputs")
}

fn find(root: &Path) -> Result<Vec<Guest>> {
    let mut guests = Vec::new();
    for (workspace, folders, kind) in PLACES {
        let workspace = root.join(workspace);
        for folder in folders {
            for crate_dir in folders_in(&workspace.join(folder))? {
                guests.extend(guests_of(&workspace, &crate_dir, kind)?);
            }
        }
    }
    let mut names = BTreeSet::new();
    for guest in &guests {
        if !names.insert((guest.kind.folder(), &guest.name)) {
            bail!("two guests are called `{}`; the second is in {}", guest.name, guest.crate_dir.display());
        }
    }
    Ok(guests)
}

fn folders_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("list {}", folder.display())),
    };
    let mut found = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    found.retain(|path| path.is_dir());
    found.sort();
    Ok(found)
}

fn guests_of(workspace: &Path, crate_dir: &Path, kind: Kind) -> Result<Vec<Guest>> {
    let mut wanted = Vec::new();
    let folder_name = crate_dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if crate_dir.join("plugin.toml").is_file() {
        wanted.push((folder_name, Variant { features: Vec::new(), plugin: None }));
    }
    let variants = crate_dir.join("variants.toml");
    if variants.is_file() {
        let text = fs::read_to_string(&variants).with_context(|| format!("read {}", variants.display()))?;
        let listed: BTreeMap<String, Variant> =
            toml::from_str(&text).with_context(|| format!("understand {}", variants.display()))?;
        wanted.extend(listed);
    }
    let guest = |(name, variant): (String, Variant)| {
        let manifest = crate_dir.join(variant.plugin.as_deref().unwrap_or("plugin.toml"));
        let name = match kind {
            Kind::Test => name,
            Kind::System => path_in(&manifest)?.replace('/', "__"),
        };
        let (workspace, crate_dir) = (workspace.to_owned(), crate_dir.to_owned());
        Ok(Guest { name, kind, workspace, crate_dir, manifest, features: variant.features })
    };
    wanted.into_iter().map(guest).collect()
}

pub fn path_in(manifest: &Path) -> Result<String> {
    let text = fs::read_to_string(manifest).with_context(|| format!("read {}", manifest.display()))?;
    let parsed = Manifest::parse(&text).with_context(|| format!("understand {}", manifest.display()))?;
    Ok(parsed.path.to_string())
}

/// The hash of everything that can change the component.
fn inputs(guest: &Guest, root: &Path, toolchain: &Toolchain) -> Result<String> {
    let mut hash = Sha256::new();
    if guest.is_source() {
        hash_files(&mut hash, &guest.crate_dir, root, &|path| !path.ends_with("__pycache__"))?;
        return Ok(hex::encode(hash.finalize()));
    }
    // By its place in the checkout: another checkout of the same text has the same guests.
    let manifest = guest.manifest.strip_prefix(root).unwrap_or(&guest.manifest);
    hash.update(format!("{} {:?} {}\n", toolchain.id(), guest.features, manifest.display()));
    for folder in COMMON {
        // Of the contract, guests see the WIT and not the crate that reads it.
        hash_files(&mut hash, &root.join(folder), root, &|path| !path.ends_with("wit/src"))?;
    }
    // The services of the engine are the pure core, compiled.
    let crate_file = fs::read_to_string(guest.crate_dir.join("Cargo.toml")).unwrap_or_default();
    if crate_file.contains("noetl-flow") {
        hash_files(&mut hash, &root.join("flow/src"), root, &|_| true)?;
        hash.update(fs::read(root.join("flow/Cargo.toml")).unwrap_or_default());
        // Its dependencies' versions are the workspace's.
        hash.update(fs::read(root.join("Cargo.toml")).unwrap_or_default());
        // A test guest that goes wrong on purpose borrows the orchestrator's own conversions.
        hash_files(&mut hash, &root.join("plugins/orchestrate/src"), root, &|_| guest.kind == Kind::Test)?;
    }
    // Other guests of the workspace do not count; what lies beside them can be shared by all.
    let is_other_guest = |folder: &Path| {
        folder != guest.crate_dir && ["plugin.toml", "variants.toml"].iter().any(|file| folder.join(file).is_file())
    };
    hash_files(&mut hash, &guest.workspace, root, &|path| !is_other_guest(path))?;
    Ok(hex::encode(hash.finalize()))
}

/// Adds the name and content of every file below a folder; `enter` decides on folders.
pub fn hash_files(hash: &mut Sha256, folder: &Path, root: &Path, enter: &dyn Fn(&Path) -> bool) -> Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    let walk = WalkDir::new(folder).sort_by_file_name().into_iter();
    for entry in
        walk.filter_entry(|entry| entry.file_name() != "target" && (entry.file_type().is_file() || enter(entry.path())))
    {
        let entry = entry?;
        if entry.file_type().is_file() {
            let content = fs::read(entry.path()).with_context(|| format!("read {}", entry.path().display()))?;
            let name = entry.path().strip_prefix(root).unwrap_or(entry.path());
            hash.update(format!("{} {}\n", name.display(), content.len()));
            hash.update(content);
        }
    }
    Ok(())
}

/// Removes what no guest makes any more, lest it be embedded for ever.
fn remove_others(project: &Project, guests: &[Guest]) -> Result<()> {
    let mut outputs: Vec<_> = guests.iter().map(|guest| guest.output(project)).collect();
    outputs.extend(interpreters::outputs(project)?);
    let wanted: BTreeSet<_> = outputs.iter().flat_map(|file| [file.clone(), stamp(file)]).collect();
    for kind in [Kind::System, Kind::Test] {
        let folder = project.guests().join(kind.folder());
        fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if !wanted.contains(&path) {
                fs::remove_file(&path).with_context(|| format!("remove {}", path.display()))?;
            }
        }
    }
    Ok(())
}

pub fn write(file: &Path, content: &[u8]) -> Result<()> {
    if fs::read(file).is_ok_and(|present| present == content) {
        return Ok(());
    }
    let temporary = file.with_extension("new");
    fs::write(&temporary, content)
        .and_then(|()| fs::rename(&temporary, file))
        .with_context(|| format!("write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, path: &str, text: &str) {
        let file = root.join(path);
        fs::create_dir_all(file.parent().expect("has a folder")).expect("folder");
        fs::write(file, text).expect("file");
    }

    fn sample() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("temporary folder");
        let manifest = |path: &str| format!("path = \"{path}\"\nversion = \"1.0.0\"\nworld = \"transform\"\n");
        put(root.path(), "plugins/Cargo.toml", "[workspace]\n");
        put(root.path(), "plugins/shared/src/lib.rs", "// for all\n");
        put(root.path(), "plugins/tools/noop/plugin.toml", &manifest("tools/noop"));
        put(root.path(), "plugins/tools/noop/Cargo.toml", "");
        put(root.path(), "plugins/tools/echo/plugin.toml", &manifest("tools/echo"));
        put(root.path(), "tests/guests/greet/plugin.toml", &manifest("acme/demo/greet"));
        put(root.path(), "tests/guests/greet/variants.toml", "greet-loud = { features = [\"loud\"] }\n");
        put(root.path(), "tests/guests/only/variants.toml", "only-a = { plugin = \"a.toml\" }\n");
        root
    }

    #[test]
    fn folders_and_variants_become_components() {
        let root = sample();
        let names: Vec<_> = find(root.path()).expect("find").into_iter().map(|guest| guest.name).collect();
        assert_eq!(names, ["tools__echo", "tools__noop", "greet", "greet-loud", "only-a"]);
    }

    #[test]
    fn a_guest_is_rebuilt_for_its_own_and_shared_files_only() {
        let root = sample();
        let toolchain = Toolchain::find_for(&[]).expect("nothing is looked for");
        let hash = || {
            let guests = find(root.path()).expect("find");
            let noop = guests.iter().find(|guest| guest.name == "tools__noop").expect("noop");
            inputs(noop, root.path(), &toolchain).expect("hash")
        };
        let mut last = hash();
        for (file, counts) in [
            ("plugins/tools/echo/src/lib.rs", false),
            ("plugins/tools/noop/src/lib.rs", true),
            ("plugins/shared/src/lib.rs", true),
            ("sdk/rust/src/lib.rs", true),
            ("wit/kv/0.1.0/kv.wit", true),
            ("wit/src/lib.rs", false),
            ("plugins/target/release/junk", false),
            ("store/src/lib.rs", false),
        ] {
            put(root.path(), file, "changed");
            let now = hash();
            assert_eq!(now != last, counts, "{file}");
            last = now;
        }
    }
}
