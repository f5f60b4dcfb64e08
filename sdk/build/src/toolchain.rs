//! Which compiler makes WebAssembly on this machine.
//!
//! Two routes, tried per target in this order:
//! 1. *Installed*: the ordinary `rustc` has the target's standard library (`rustup target add`).
//! 2. *From source*: Debian's own compiler with the standard library's source, compiled by Cargo along with the guest.
//!    The linkers come from the ordinary toolchain, which ships them for every target; Debian's lld replaces `rust-lld`
//!    where there is none.
//!
//! Programs are named by full path from here on: a `rust-toolchain.toml` beside a guest or another order of `PATH` cannot
//! pick a compiler that was not checked. Finding looks at files and asks compilers for their version; it changes nothing.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use noetl_contract::manifest::BuildTarget;
use sha2::{Digest, Sha256};

use crate::process::answer;

/// Every target a guest can ask for.
pub const TARGETS: [BuildTarget; 2] = [BuildTarget::Unknown, BuildTarget::Wasip2];

const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_WASI_LIBC: &str = "/usr/lib/wasm32-wasi";
const DEBIAN_LLD: [&str; 2] = ["/usr/bin/lld-19", "/usr/lib/llvm-19/bin/lld"];

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no compiler for {} was found on this machine:\n{}\nrun `rustup target add {}`, or on Debian `apt-get install {}`",
    .target.name(), .checked.join("\n"), .target.name(), crate::install::PACKAGES.join(" ")
)]
pub struct ToolchainError {
    pub target: BuildTarget,
    /// One line for each way that was tried and why it does not do.
    pub checked: Vec<String>,
}

/// How one target is compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// The compiler has the target's standard library.
    Installed { rustc: PathBuf, cargo: PathBuf, sysroot: PathBuf, version: String },
    /// The standard library is compiled from its source.
    FromSource { rustc: PathBuf, cargo: PathBuf, rust_source: PathBuf, linkers: Linkers, version: String },
}

/// Where the linkers of the from-source route are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linkers {
    /// Folders to put in front of `PATH`.
    pub folders: Vec<PathBuf>,
    /// Debian's lld, to be offered under the name `rust-lld`.
    pub lld: Option<PathBuf>,
}

/// The routes of all targets that were asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    routes: Vec<(BuildTarget, Route)>,
}

impl Toolchain {
    /// The compilers for every target.
    pub fn find() -> Result<Toolchain, ToolchainError> {
        Self::find_for(&TARGETS)
    }

    /// The compilers for these targets; an author who uses one target needs no other.
    pub fn find_for(targets: &[BuildTarget]) -> Result<Toolchain, ToolchainError> {
        let machine = Machine::look();
        let routes = targets.iter().map(|target| Ok((*target, machine.route(*target)?))).collect::<Result<_, _>>()?;
        Ok(Toolchain { routes })
    }

    /// The route of a target; none if it was not asked for when this was found.
    pub fn route(&self, target: BuildTarget) -> Option<&Route> {
        self.routes.iter().find(|(known, _)| *known == target).map(|(_, route)| route)
    }

    /// Changes whenever the output of a build could change with the compiler.
    pub fn id(&self) -> String {
        let mut hash = Sha256::new();
        for (target, route) in &self.routes {
            hash.update(format!("{} {route:?}\n", target.name()));
        }
        hex::encode(&hash.finalize()[..8])
    }
}

/// One line a target: what is used.
impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (target, route)) in self.routes.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{}: {}", target.name(), route.summary())?;
        }
        Ok(())
    }
}

impl Route {
    pub fn summary(&self) -> String {
        let (version, how) = match self {
            Route::Installed { version, .. } => (version, "standard library installed"),
            Route::FromSource { version, .. } => (version, "standard library built from source"),
        };
        format!("{}, {how}", version.lines().next().unwrap_or_default())
    }

    pub(crate) fn rustc(&self) -> &Path {
        match self {
            Route::Installed { rustc, .. } | Route::FromSource { rustc, .. } => rustc,
        }
    }

    pub(crate) fn cargo(&self) -> &Path {
        match self {
            Route::Installed { cargo, .. } | Route::FromSource { cargo, .. } => cargo,
        }
    }

    /// The folder the standard library's source paths start with.
    pub(crate) fn rust_source(&self) -> &Path {
        match self {
            Route::Installed { sysroot, .. } => sysroot,
            Route::FromSource { rust_source, .. } => rust_source,
        }
    }

    /// `PATH` for the compiler: the linkers first, then what the user has.
    pub(crate) fn path_variable(&self, lld_folder: &Path) -> OsString {
        let user = env::var_os("PATH").unwrap_or_default();
        let Route::FromSource { linkers, .. } = self else { return user };
        let own = linkers.lld.as_ref().map(|_| lld_folder.to_owned());
        let folders = linkers.folders.iter().cloned().chain(own).chain(env::split_paths(&user));
        // A folder name with a `:` in it cannot be put on PATH; the user's own PATH is then the best that can be had.
        env::join_paths(folders).unwrap_or(user)
    }

    /// Compiler flags for every crate of the build.
    pub(crate) fn rustflags(&self, target: BuildTarget) -> String {
        match (self, target) {
            (Route::FromSource { .. }, BuildTarget::Wasip2) => format!("-Lnative={DEBIAN_WASI_LIBC}"),
            _ => String::new(),
        }
    }
}

/// What is on this machine, asked once for all targets.
struct Machine {
    ordinary: Option<Compiler>,
    debian: Option<Compiler>,
}

struct Compiler {
    rustc: PathBuf,
    sysroot: PathBuf,
    version: String,
    host: String,
}

impl Compiler {
    fn ask(rustc: &Path) -> Option<Compiler> {
        let sysroot = PathBuf::from(answer(rustc, &["--print", "sysroot"])?);
        let version = answer(rustc, &["-vV"])?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "))?.to_owned();
        // `rustc` on PATH may be a proxy that picks a compiler by folder; the one it picked here is in its sysroot.
        let picked = sysroot.join("bin/rustc");
        let rustc = if picked.is_file() { picked } else { rustc.to_owned() };
        Some(Compiler { rustc, sysroot, version, host })
    }

    fn cargo(&self) -> PathBuf {
        let own = self.sysroot.join("bin/cargo");
        if own.is_file() { own } else { PathBuf::from("cargo") }
    }

    fn has_standard_library(&self, target: BuildTarget) -> bool {
        let folder = self.sysroot.join("lib/rustlib").join(target.name()).join("lib");
        let Ok(files) = folder.read_dir() else { return false };
        let names: Vec<_> = files.flatten().map(|file| file.file_name().to_string_lossy().into_owned()).collect();
        ["libcore-", "libstd-"].iter().all(|library| {
            names
                .iter()
                .any(|name| name.starts_with(library) && Path::new(name).extension().is_some_and(|e| e == "rlib"))
        })
    }

    fn linker_folder(&self) -> PathBuf {
        self.sysroot.join("lib/rustlib").join(&self.host).join("bin")
    }
}

impl Machine {
    fn look() -> Machine {
        Machine { ordinary: Compiler::ask(Path::new("rustc")), debian: Compiler::ask(Path::new(DEBIAN_RUSTC)) }
    }

    fn route(&self, target: BuildTarget) -> Result<Route, ToolchainError> {
        let mut checked = Vec::new();
        match &self.ordinary {
            Some(compiler) if compiler.has_standard_library(target) => {
                return Ok(Route::Installed {
                    rustc: compiler.rustc.clone(),
                    cargo: compiler.cargo(),
                    sysroot: compiler.sysroot.clone(),
                    version: compiler.version.clone(),
                });
            }
            Some(compiler) => {
                checked.push(format!("  {} has no standard library for {}", compiler.sysroot.display(), target.name()))
            }
            None => checked.push("  there is no `rustc` on PATH".to_owned()),
        }
        match self.source_route(target) {
            Ok(route) => return Ok(route),
            Err(reason) => checked.push(format!("  Debian's compiler: {reason}")),
        }
        Err(ToolchainError { target, checked })
    }

    fn source_route(&self, target: BuildTarget) -> Result<Route, String> {
        let debian = self.debian.as_ref().ok_or_else(|| format!("{DEBIAN_RUSTC} is not there (package rustc-web)"))?;
        let cargo = PathBuf::from(DEBIAN_CARGO);
        if !cargo.is_file() {
            return Err(format!("{DEBIAN_CARGO} is not there (package cargo-web)"));
        }
        let rust_source = debian.sysroot.join("lib/rustlib/src/rust");
        if !rust_source.join("library/Cargo.lock").is_file() {
            return Err(format!("{} has no library source (package rust-web-src)", rust_source.display()));
        }
        if target == BuildTarget::Wasip2 && !Path::new(DEBIAN_WASI_LIBC).join("libc.a").is_file() {
            return Err(format!("{DEBIAN_WASI_LIBC} has no libc.a (package wasi-libc)"));
        }
        Ok(Route::FromSource {
            rustc: debian.rustc.clone(),
            cargo,
            rust_source,
            linkers: self.linkers(target)?,
            version: debian.version.clone(),
        })
    }

    fn linkers(&self, target: BuildTarget) -> Result<Linkers, String> {
        let candidates: Vec<_> =
            [&self.ordinary, &self.debian].into_iter().flatten().map(Compiler::linker_folder).collect();
        let folder_with = |tool: &str| candidates.iter().find(|folder| folder.join(tool).is_file()).cloned();
        let mut linkers = Linkers { folders: Vec::new(), lld: None };
        match folder_with("rust-lld") {
            Some(folder) => linkers.folders.push(folder),
            None => {
                let lld = DEBIAN_LLD.iter().map(PathBuf::from).find(|lld| lld.is_file());
                linkers.lld = Some(lld.ok_or("there is no linker `rust-lld` (package lld-19)")?);
            }
        }
        if target == BuildTarget::Wasip2 {
            let folder = folder_with("wasm-component-ld").ok_or("there is no linker `wasm-component-ld`")?;
            if !linkers.folders.contains(&folder) {
                linkers.folders.push(folder);
            }
        }
        Ok(linkers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_compilers_is_told_what_to_install() {
        let machine = Machine { ordinary: None, debian: None };
        let message = machine.route(BuildTarget::Wasip2).expect_err("nothing is there").to_string();
        for part in
            ["wasm32-wasip2", "no `rustc` on PATH", "rustup target add", "rustc-web cargo-web rust-web-src wasi-libc"]
        {
            assert!(message.contains(part), "{part:?} is not in:\n{message}");
        }
    }

    #[test]
    fn a_standard_library_counts_only_when_it_is_whole() {
        let sysroot = tempfile::tempdir().expect("temporary folder");
        let lib = sysroot.path().join("lib/rustlib/wasm32-unknown-unknown/lib");
        std::fs::create_dir_all(&lib).expect("folder");
        let compiler = Compiler {
            rustc: "rustc".into(),
            sysroot: sysroot.path().to_owned(),
            version: "rustc 1.0.0".to_owned(),
            host: "x86_64-unknown-linux-gnu".to_owned(),
        };
        std::fs::write(lib.join("libcore-1.rlib"), "").expect("file");
        assert!(!compiler.has_standard_library(BuildTarget::Unknown), "a library without std was accepted");
        std::fs::write(lib.join("libstd-1.rlib"), "").expect("file");
        assert!(compiler.has_standard_library(BuildTarget::Unknown));
        assert!(!compiler.has_standard_library(BuildTarget::Wasip2));
    }
}
