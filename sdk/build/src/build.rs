//! One build: Cargo for the guest target, then the component around what it made.
//!
//! The crate's own `Cargo.toml` decides the release profile and its own `Cargo.lock` the dependencies. The environment is
//! cleaned of settings that would change the output (compiler flags, profiles, another target), so that a build depends on
//! the sources and the compiler alone.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use noetl_contract::Manifest;
use noetl_contract::manifest::{BuildTarget, ManifestErrors, SectionError, embed};
use serde::Deserialize;
use wit_component::ComponentEncoder;

use crate::dependencies::{self, Edge, Package as Dependency};
use crate::shared::{Owners, SharedTarget, default_target_folder};
use crate::toolchain::{Route, Toolchain, ToolchainError};

/// What to build.
#[derive(Debug, Clone, Default)]
pub struct BuildRequest {
    /// The folder with the `Cargo.toml`.
    pub crate_dir: PathBuf,
    /// None: what the manifest's `[build] target` says.
    pub target: Option<BuildTarget>,
    /// A member of the workspace in `crate_dir`; none: the package whose `Cargo.toml` is there.
    pub package: Option<String>,
    pub features: Vec<String>,
    /// None: the folder all guest builds of the user share.
    pub target_dir: Option<PathBuf>,
    /// None: `plugin.toml` beside the `Cargo.toml`, if there is one.
    pub manifest: Option<PathBuf>,
    /// Folder whose path must not be in the output; none: the crate's workspace. Name a wider one when the
    /// crate depends on others outside its workspace.
    pub source_root: Option<PathBuf>,
    /// Show compile errors and warnings only.
    pub quiet: bool,
}

impl BuildRequest {
    pub fn new(crate_dir: impl Into<PathBuf>) -> Self {
        Self { crate_dir: crate_dir.into(), ..Self::default() }
    }
}

/// A finished build.
#[derive(Debug, Clone)]
pub struct Built {
    /// The component, with its manifest inside if the crate has one.
    pub component: Vec<u8>,
    /// The parsed manifest, if the crate has one.
    pub manifest: Option<Manifest>,
    pub target: BuildTarget,
    /// The compiler, as people name it.
    pub toolchain: String,
    /// What the compiler wrote; another build may have replaced it since.
    pub module_path: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error(transparent)]
    Toolchain(#[from] ToolchainError),
    #[error("there is no Cargo.toml in {0}: name the folder of a guest crate, or make one with `noetl plugin new`")]
    NoCrate(PathBuf),
    #[error("the manifest {file} is not valid\n{problems}")]
    Manifest { file: PathBuf, problems: ManifestErrors },
    #[error("{what} {path}: {source}")]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    /// Cargo has said on stderr what is wrong.
    #[error("cargo {step} failed for {crate_dir}; its messages are above")]
    Cargo { step: &'static str, crate_dir: PathBuf },
    #[error("cargo {step} answered in a way that is not understood: {problem}")]
    Answer { step: &'static str, problem: String },
    #[error("there is no package `{package}` in {crate_dir}")]
    NoPackage { package: String, crate_dir: PathBuf },
    #[error("package `{0}` makes no WebAssembly module: add `[lib] crate-type = [\"cdylib\"]` to its Cargo.toml")]
    NoModule(String),
    #[error("the module does not form a component: {0}")]
    Encode(String),
    #[error("the manifest cannot be embedded: {0}")]
    Embed(#[from] SectionError),
    #[error("no folder for compiled guests: set HOME or XDG_CACHE_HOME, or name a target folder")]
    NoTargetFolder,
}

/// Builds with whatever toolchain this machine has for the crate's target.
pub fn build(request: &BuildRequest) -> Result<Built, BuildError> {
    let plan = Plan::of(request)?;
    let toolchain = Toolchain::find_for(&[plan.target])?;
    plan.run(&toolchain, request)
}

impl Toolchain {
    /// Builds with this toolchain, for callers that build several crates.
    pub fn build(&self, request: &BuildRequest) -> Result<Built, BuildError> {
        Plan::of(request)?.run(self, request)
    }
}

/// What the request and the manifest together ask for.
struct Plan {
    crate_dir: PathBuf,
    target: BuildTarget,
    target_dir: PathBuf,
    manifest: Option<(String, Manifest)>,
}

impl Plan {
    fn of(request: &BuildRequest) -> Result<Plan, BuildError> {
        let crate_dir =
            fs::canonicalize(&request.crate_dir).map_err(|_| BuildError::NoCrate(request.crate_dir.clone()))?;
        if !crate_dir.join("Cargo.toml").is_file() {
            return Err(BuildError::NoCrate(crate_dir));
        }
        let manifest = read_manifest(request, &crate_dir)?;
        let by_manifest = manifest.as_ref().map(|(_, manifest)| manifest.build.target).unwrap_or_default();
        let target_dir = match &request.target_dir {
            Some(folder) => std::path::absolute(folder).map_err(|source| failed("cannot use", folder, source))?,
            None => default_target_folder().ok_or(BuildError::NoTargetFolder)?,
        };
        Ok(Plan { crate_dir, target: request.target.unwrap_or(by_manifest), target_dir, manifest })
    }

    fn run(self, toolchain: &Toolchain, request: &BuildRequest) -> Result<Built, BuildError> {
        let not_found = || ToolchainError { target: self.target, checked: vec!["  it was not looked for".to_owned()] };
        let route = toolchain.route(self.target).ok_or_else(not_found)?;
        let in_folder = |source| failed("cannot write in", &self.target_dir, source);
        let waiting = || {
            if !request.quiet {
                eprintln!("waiting for another guest build in {}", self.target_dir.display());
            }
        };
        let shared = SharedTarget::lock(&self.target_dir, waiting).map_err(in_folder)?;
        let cargo = Cargo::new(&self, route, &shared, request).map_err(in_folder)?;

        let project = cargo.metadata()?;
        let root = project.root(request.package.as_deref(), &self.crate_dir)?;
        let owners = project.owners(root, &format!("{} {:?}", route.summary(), request.features));
        let strangers = shared.strangers(self.target, &owners);
        if !strangers.is_empty() {
            cargo.clean(&strangers)?;
            shared.record(self.target, owners).map_err(in_folder)?;
        }

        let source_root = request.source_root.as_deref().unwrap_or(&project.workspace_root);
        let module_path = cargo.build(root, source_root, &request.features)?;
        // Read while the lock is held: afterwards the file may be another project's.
        let module = fs::read(&module_path).map_err(|source| failed("cannot read", &module_path, source))?;
        drop(shared);
        let (toolchain, parts) = (route.summary(), project.dependencies(root));

        let component = match self.target {
            BuildTarget::Unknown => encode(&module)?,
            BuildTarget::Wasip2 => module,
        };
        let component = dependencies::embed(&component, &parts);
        let (component, manifest) = match self.manifest {
            Some((text, manifest)) => (embed(&component, &text)?, Some(manifest)),
            None => (component, None),
        };
        Ok(Built { component, manifest, target: self.target, toolchain, module_path })
    }
}

fn failed(what: &'static str, path: &Path, source: io::Error) -> BuildError {
    BuildError::Io { what, path: path.to_owned(), source }
}

fn read_manifest(request: &BuildRequest, crate_dir: &Path) -> Result<Option<(String, Manifest)>, BuildError> {
    let file = request.manifest.clone().unwrap_or_else(|| crate_dir.join("plugin.toml"));
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound && request.manifest.is_none() => return Ok(None),
        Err(source) => return Err(failed("cannot read", &file, source)),
    };
    match Manifest::parse(&text) {
        Ok(manifest) => Ok(Some((text, manifest))),
        Err(problems) => Err(BuildError::Manifest { file, problems }),
    }
}

fn encode(module: &[u8]) -> Result<Vec<u8>, BuildError> {
    let encoded = ComponentEncoder::default().validate(true).module(module).and_then(|encoder| encoder.encode());
    encoded.map_err(|error| BuildError::Encode(format!("{error:#}")))
}

/// Settings from outside that say where things are or how Cargo talks, not what it makes.
const KEPT: [&str; 9] = [
    "CARGO_HOME",
    "CARGO_NET_",
    "CARGO_HTTP_",
    "CARGO_REGISTR",
    "CARGO_SOURCE_",
    "CARGO_TERM_",
    "CARGO_BUILD_JOBS",
    "RUSTUP_HOME",
    "RUST_MIN_STACK",
];

/// Cargo with everything settled that all its calls share.
struct Cargo<'a> {
    plan: &'a Plan,
    route: &'a Route,
    path: std::ffi::OsString,
    wrapper: PathBuf,
    quiet: bool,
}

impl<'a> Cargo<'a> {
    fn new(plan: &'a Plan, route: &'a Route, shared: &SharedTarget, request: &BuildRequest) -> io::Result<Cargo<'a>> {
        let lld = match route {
            Route::FromSource { linkers, .. } => linkers.lld.as_deref(),
            Route::Installed { .. } => None,
        };
        let path = route.path_variable(&shared.lld_folder(lld)?);
        Ok(Cargo { plan, route, path, wrapper: shared.wrapper()?, quiet: request.quiet })
    }

    fn command(&self, step: &str) -> Command {
        let mut command = Command::new(self.route.cargo());
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            let decides = text.starts_with("CARGO") || text.starts_with("RUST");
            if decides && !KEPT.iter().any(|kept| text.starts_with(kept)) {
                command.env_remove(&name);
            }
        }
        command.current_dir(&self.plan.crate_dir).arg(step).stdin(Stdio::null());
        command.env("RUSTC", self.route.rustc()).env("PATH", &self.path);
        // Some hash maps (those under Arrow) take their seed when they are compiled; it must not change from build to build.
        command.env("CONST_RANDOM_SEED", "noetl");
        if matches!(self.route, Route::FromSource { .. }) {
            // Compiling the standard library is not a stable feature of the compiler; it is what this allows.
            command.env("RUSTC_BOOTSTRAP", "1");
        }
        command
    }

    fn metadata(&self) -> Result<Project, BuildError> {
        let mut command = self.command("metadata");
        command.args(["--format-version", "1", "--filter-platform", self.plan.target.name()]);
        let answer = self.run(command, "metadata")?;
        serde_json::from_slice(&answer)
            .map_err(|error| BuildError::Answer { step: "metadata", problem: error.to_string() })
    }

    fn clean(&self, packages: &[String]) -> Result<(), BuildError> {
        let mut command = self.command("clean");
        command.args(["--quiet", "--release", "--target", self.plan.target.name(), "--target-dir"]);
        command.arg(&self.plan.target_dir);
        for package in packages {
            command.args(["--package", package]);
        }
        self.run(command, "clean").map(|_| ())
    }

    /// Compiles and answers with the file that was made.
    fn build(&self, root: &Package, source_root: &Path, features: &[String]) -> Result<PathBuf, BuildError> {
        let mut command = self.command("build");
        command.args(["--release", "--lib", "--message-format=json-render-diagnostics"]);
        command.args(["--target", self.plan.target.name(), "--package", &root.id, "--target-dir"]);
        command.arg(&self.plan.target_dir);
        if !features.is_empty() {
            command.args(["--features", &features.join(",")]);
        }
        if self.quiet {
            command.arg("--quiet");
        }
        if matches!(self.route, Route::FromSource { .. }) {
            command.arg("-Zbuild-std=std,panic_abort");
        }
        let cargo_home = env::var_os("CARGO_HOME").map(PathBuf::from);
        let cargo_home = cargo_home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
        command
            .env("RUSTFLAGS", self.route.rustflags(self.plan.target))
            .env("RUSTC_WRAPPER", &self.wrapper)
            .env("NOETL_SOURCE_ROOT", source_root)
            .env("NOETL_RUST_SOURCE", self.route.rust_source())
            .env("NOETL_CARGO_HOME", cargo_home.unwrap_or_else(|| PathBuf::from("/cargo")));
        let answer = self.run(command, "build")?;
        module_of(&answer, root)
    }

    /// Runs with stderr going to the user; answers with stdout.
    fn run(&self, mut command: Command, step: &'static str) -> Result<Vec<u8>, BuildError> {
        let output = command
            .stderr(Stdio::inherit())
            .output()
            .map_err(|source| failed("cannot start", self.route.cargo(), source))?;
        if !output.status.success() {
            return Err(BuildError::Cargo { step, crate_dir: self.plan.crate_dir.clone() });
        }
        Ok(output.stdout)
    }
}

/// The file of the root package's `cdylib` among Cargo's messages.
fn module_of(messages: &[u8], root: &Package) -> Result<PathBuf, BuildError> {
    for line in messages.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        // Build scripts can print lines of their own between the messages.
        let Ok(message) = serde_json::from_slice::<Message>(line) else { continue };
        if message.reason == "compiler-artifact" && message.package_id.as_deref() == Some(&root.id) {
            let wasm = message.filenames.into_iter().find(|file| file.extension().is_some_and(|e| e == "wasm"));
            if let Some(file) = wasm {
                return Ok(file);
            }
        }
    }
    Err(BuildError::NoModule(root.name.clone()))
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    package_id: Option<String>,
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

/// The part of `cargo metadata` that matters here.
#[derive(Deserialize)]
struct Project {
    packages: Vec<Package>,
    resolve: Resolve,
    workspace_root: PathBuf,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    /// None for a package that is a folder on this machine.
    source: Option<String>,
    manifest_path: PathBuf,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    dependencies: Vec<String>,
    deps: Vec<NodeEdge>,
}

#[derive(Deserialize)]
struct NodeEdge {
    pkg: String,
    dep_kinds: Vec<NodeEdgeKind>,
}

#[derive(Deserialize)]
struct NodeEdgeKind {
    /// None for what the code itself uses; else `build` or `dev`.
    kind: Option<String>,
}

impl Project {
    fn root(&self, name: Option<&str>, crate_dir: &Path) -> Result<&Package, BuildError> {
        let file = crate_dir.join("Cargo.toml");
        let mut local = self.packages.iter().filter(|package| package.source.is_none());
        let found = match name {
            Some(name) => local.find(|package| package.name == name),
            None => local.find(|package| package.manifest_path == file),
        };
        found.ok_or_else(|| BuildError::NoPackage {
            package: name.unwrap_or("in this folder").to_owned(),
            crate_dir: crate_dir.to_owned(),
        })
    }

    /// What goes into the component: every package the root needs to be built, and what it needs it for.
    fn dependencies(&self, root: &Package) -> Vec<Dependency> {
        let nodes: BTreeMap<_, _> = self.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
        let packages = self.packages.iter().map(|package| {
            let edges = nodes.get(package.id.as_str()).into_iter().flat_map(|node| &node.deps).filter_map(|edge| {
                let has = |wanted: Option<&str>| edge.dep_kinds.iter().any(|it| it.kind.as_deref() == wanted);
                (has(None) || has(Some("build"))).then(|| Edge { to: edge.pkg.clone(), at_run_time: has(None) })
            });
            Dependency {
                id: package.id.clone(),
                name: package.name.clone(),
                version: package.version.clone(),
                source: package.source.clone(),
                edges: edges.collect(),
            }
        });
        dependencies::reached(&root.id, packages.collect())
    }

    /// Who the path packages of this build belong to. How the root is built is part of its owner, as all ways of
    /// building it write the same file.
    fn owners(&self, root: &Package, how: &str) -> Owners {
        let edges: BTreeMap<_, _> = self.resolve.nodes.iter().map(|node| (&node.id, &node.dependencies)).collect();
        let mut reached = BTreeSet::from([&root.id]);
        let mut open = vec![&root.id];
        while let Some(id) = open.pop() {
            for next in edges.get(id).into_iter().flat_map(|dependencies| dependencies.iter()) {
                if reached.insert(next) {
                    open.push(next);
                }
            }
        }
        let local = self.packages.iter().filter(|package| package.source.is_none() && reached.contains(&package.id));
        local
            .map(|package| {
                let place = package.manifest_path.display();
                let owner = if package.id == root.id { format!("{place} {how}") } else { place.to_string() };
                (package.name.clone(), owner)
            })
            .collect()
    }
}
