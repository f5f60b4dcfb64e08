//! The interpreters that are embedded in the binary: `plugins/interpreters/<language>`, each built by its language's own
//! tools.
//!
//! A build takes the better part of a minute and gives other bytes every time (a snapshot of a running interpreter is
//! what it makes), so what was built is kept in the user's cache folder by the hash of everything it was made from:
//! checkouts share it, and with the same bytes its machine code is shared too. The tools are installed there as well, in
//! the versions `requirements.txt` and `package-lock.json` pin; nothing is installed for the whole machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use noetl_contract::{manifest, packages};
use noetl_guest_build::shared::cache_folder;
use sha2::{Digest, Sha256};

use crate::guests::{hash_files, path_in, stamp, write};
use crate::project::{Project, as_typed};
use crate::say::Step;

/// What makes one interpreter.
struct Recipe {
    language: &'static str,
    /// The SDK that is part of it.
    sdk: &'static str,
    /// The file that pins the tools.
    pins: &'static str,
    /// Installs the tools into a folder.
    install: fn(&Recipe, &Path, &Path) -> Result<()>,
    /// Makes the component of sources, WIT and tools.
    build: fn(&Place<'_>) -> Result<()>,
}

/// Where things are during a build.
struct Place<'a> {
    source: &'a Path,
    sdk: &'a Path,
    wit: &'a Path,
    tools: &'a Path,
    output: &'a Path,
}

const RECIPES: [Recipe; 2] = [
    Recipe {
        language: "python",
        sdk: "sdk/python/noetl",
        pins: "requirements.txt",
        install: install_python,
        build: build_python,
    },
    Recipe { language: "js", sdk: "sdk/js", pins: "package-lock.json", install: install_js, build: build_js },
];

/// What has to be on the machine; the first thing that is missing.
pub fn missing() -> Option<&'static str> {
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    let is_there = |program: &str| folders.iter().any(|folder| folder.join(program).is_file());
    let venv = || Command::new("python3").args(["-c", "import venv, ensurepip"]).output();
    let wanted = [
        (venv().is_ok_and(|output| output.status.success()), "Python 3.10 or newer with venv (Debian: python3-venv)"),
        (is_there("node"), "Node.js 20 or newer (Debian: nodejs)"),
        (is_there("npm"), "npm (Debian: npm)"),
    ];
    wanted.into_iter().find(|(there, _)| !there).map(|(_, what)| what)
}

/// The files the binary embeds; guests that are not among them are removed from the folder.
pub fn outputs(project: &Project) -> Result<Vec<PathBuf>> {
    RECIPES.iter().map(|recipe| recipe.output(project)).collect()
}

pub fn build_all(project: &Project) -> Result<()> {
    for recipe in &RECIPES {
        let (inputs, file) = (recipe.inputs(&project.root)?, recipe.output(project)?);
        if file.is_file() && fs::read_to_string(stamp(&file)).is_ok_and(|known| known == inputs) {
            continue;
        }
        let kept = tool_folder()?.join(format!("{}-{inputs}.wasm", recipe.language));
        if !kept.is_file() {
            recipe.make(project, &kept)?;
        }
        let component = fs::read(&kept).with_context(|| format!("read {}", kept.display()))?;
        let manifest = fs::read_to_string(recipe.folder(&project.root).join("plugin.toml"))?;
        write(&file, &manifest::embed(&component, &manifest)?)?;
        write(&stamp(&file), inputs.as_bytes())?;
    }
    Ok(())
}

impl Recipe {
    fn folder(&self, root: &Path) -> PathBuf {
        root.join("plugins/interpreters").join(self.language)
    }

    fn output(&self, project: &Project) -> Result<PathBuf> {
        let path = path_in(&self.folder(&project.root).join("plugin.toml"))?;
        Ok(project.guests().join("system").join(format!("{}.wasm", path.replace('/', "__"))))
    }

    fn inputs(&self, root: &Path) -> Result<String> {
        let mut hash = Sha256::new();
        let text = |path: &Path| !["__pycache__", "node_modules", "tests"].iter().any(|name| path.ends_with(name));
        hash_files(&mut hash, &self.folder(root), root, &text)?;
        hash_files(&mut hash, &root.join(self.sdk), root, &text)?;
        for source in packages::SOURCES {
            hash.update(source.text);
        }
        Ok(hex::encode(hash.finalize()))
    }

    fn make(&self, project: &Project, kept: &Path) -> Result<()> {
        let step = Step::start(&format!("building the {} interpreter", self.language));
        let source = self.folder(&project.root);
        let tools = self.tools(&source, &step)?;
        step.now(&format!("the {} interpreter", self.language));
        let work = tempfile::tempdir().context("make a temporary folder")?;
        let wit = work.path().join("wit");
        lay_out_contract(&wit)?;
        let output = work.path().join("interpreter.wasm");
        let sdk = project.root.join(self.sdk);
        (self.build)(&Place { source: &source, sdk: &sdk, wit: &wit, tools: &tools, output: &output })
            .with_context(|| format!("build the {} interpreter", self.language))?;
        let component = fs::read(&output).with_context(|| format!("read {}", output.display()))?;
        write(kept, &component)?;
        step.end(&format!("the {} interpreter is built ({} MB)", self.language, component.len() / 1_000_000));
        Ok(())
    }

    /// The folder with the pinned tools, installed if it is not there.
    fn tools(&self, source: &Path, step: &Step) -> Result<PathBuf> {
        let pins = fs::read(source.join(self.pins)).with_context(|| format!("read {}", self.pins))?;
        let id = &hex::encode(Sha256::digest(pins))[..16];
        let folder = tool_folder()?.join(format!("{}-tools-{id}", self.language));
        if folder.join("installed").is_file() {
            return Ok(folder);
        }
        if let Some(what) = missing() {
            bail!("{what} is needed to build the interpreters, and is not there");
        }
        step.now(&format!("installing the tools of the {} interpreter", self.language));
        // A half-finished installation of an earlier run is of no use.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
        (self.install)(self, source, &folder)
            .with_context(|| format!("install the tools of the {} interpreter", self.language))?;
        fs::write(folder.join("installed"), "").with_context(|| format!("write in {}", folder.display()))?;
        Ok(folder)
    }
}

fn tool_folder() -> Result<PathBuf> {
    let folder = cache_folder().context("the environment names no home folder")?.join("interpreters");
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    Ok(folder)
}

/// The contract as the languages' tools want it: the package of the world, and the packages it uses below `deps/`.
fn lay_out_contract(wit: &Path) -> Result<()> {
    for source in packages::SOURCES {
        let name = source.package.trim_start_matches("noetl:");
        let file = match source.package {
            packages::INTERPRETER_PACKAGE => wit.join("interpreter.wit"),
            packages::ENGINE_PACKAGE => continue,
            _ => wit.join("deps").join(name).join(format!("{name}.wit")),
        };
        fs::create_dir_all(file.parent().unwrap_or(wit))?;
        fs::write(&file, source.text).with_context(|| format!("write {}", file.display()))?;
    }
    Ok(())
}

fn install_python(recipe: &Recipe, source: &Path, folder: &Path) -> Result<()> {
    run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    let pip = folder.join("bin/pip");
    let pins = source.join(recipe.pins);
    run(Command::new(&pip).args(["install", "--quiet", "--requirement"]).arg(&pins))?;
    // What becomes part of the interpreter lies alone: the tools are Python too.
    let library = folder.join("library");
    let mut command = Command::new(&pip);
    command.args(["install", "--quiet", "--no-deps", "--constraint"]).arg(&pins);
    run(command.arg("--target").arg(library).arg("tzdata"))
}

fn build_python(place: &Place<'_>) -> Result<()> {
    let sdk = place.sdk.parent().context("the SDK is a package in a folder")?;
    let mut command = Command::new(place.tools.join("bin/componentize-py"));
    command.arg("-d").arg(place.wit).args(["-w", "noetl:interpreter/interpreter", "componentize"]);
    command.arg("-p").arg(place.source).arg("-p").arg(sdk).arg("-p").arg(place.tools.join("library"));
    command.arg("_noetl_interpreter").arg("-o").arg(place.output);
    run(&mut command)
}

fn install_js(_: &Recipe, source: &Path, folder: &Path) -> Result<()> {
    for file in ["package.json", "package-lock.json", "build.mjs"] {
        fs::copy(source.join(file), folder.join(file)).with_context(|| format!("copy {file}"))?;
    }
    // Not `npm ci`: it wants the optional packages of every other system in the lock file too, and refuses it otherwise.
    run(Command::new("npm").args(["install", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(folder))
}

fn build_js(place: &Place<'_>) -> Result<()> {
    fs::copy(place.source.join("build.mjs"), place.tools.join("build.mjs")).context("copy build.mjs")?;
    let mut command = Command::new("node");
    command.current_dir(place.tools).arg("build.mjs").arg(place.source.join("src"));
    run(command.arg(place.sdk).arg(place.wit).arg(place.output))
}

/// Runs a tool and shows what it said only if it fails.
fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("start `{}`", as_typed(command)))?;
    if !output.status.success() {
        let said = [output.stdout, output.stderr].concat();
        bail!("`{}` failed ({}):\n{}", as_typed(command), output.status, String::from_utf8_lossy(&said).trim());
    }
    Ok(())
}
