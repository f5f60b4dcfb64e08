//! Puts the platform's own components into the binary.
//!
//! `cargo xtask build` compiles them to `<target>/guests/system/<path>.wasm`, with `__` in file names for the `/` of a
//! plugin's path. This script lists what is there in `embedded.rs`; the compiler reads the bytes and notices when they
//! change. Another folder can be named with `NOETL_GUESTS_DIR`. It compiles nothing itself, because a guest build inside a
//! build script would wait for the lock its own Cargo holds.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

const VARIABLE: &str = "NOETL_GUESTS_DIR";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    // Copied into the binary by `plugin new`; the compiler notices changed files, but not new ones.
    println!("cargo::rerun-if-changed=../sdk/rust");
    println!("cargo::rerun-if-changed=../sdk/python/noetl");
    println!("cargo::rerun-if-changed=../sdk/templates");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let folder = system_folder(&out);
    println!("cargo::rerun-if-changed={}", folder.display());

    let components = components(&folder)?;
    if components.is_empty() {
        println!("cargo::error=no system components in {}: run `cargo xtask build` first", folder.display());
        return Ok(());
    }
    let mut code = String::from("/// Path, sha256 and bytes of every component in the binary.\n");
    code.push_str("pub static EMBEDDED: &[(&str, &str, &[u8])] = &[\n");
    for (path, file) in components {
        // Taken here, because hashing the interpreters would cost every start of the server its first moments.
        let digest = hex::encode(Sha256::digest(fs::read(&file)?));
        writeln!(code, "    ({path:?}, {digest:?}, include_bytes!({:?})),", file.display().to_string())?;
    }
    code.push_str("];\n");
    fs::write(out.join("embedded.rs"), code)?;
    fs::write(out.join("descriptions.rs"), descriptions(Path::new("../plugins/tools"))?)?;
    Ok(())
}

/// What the platform's tools say about themselves. The components answer with the same files; here they are at hand
/// without running one.
fn descriptions(tools: &Path) -> Result<String, Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", tools.display());
    let mut kinds = Vec::new();
    for entry in fs::read_dir(tools)? {
        let folder = entry?.path();
        if folder.join("describe.json").is_file() {
            let kind = folder.file_name().and_then(|name| name.to_str()).ok_or("a tool's folder is not UTF-8")?;
            kinds.push(kind.to_owned());
        }
    }
    kinds.sort();
    let mut code = String::from("/// Kind and document of every tool of the platform.\n");
    code.push_str("static DESCRIPTIONS: &[(&str, &str)] = &[\n");
    for kind in kinds {
        // Seen from the checkout that compiles it: another one with the same target folder has its own files.
        let file = format!("concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/../plugins/tools/{kind}/describe.json\")");
        writeln!(code, "    ({kind:?}, include_str!({file})),")?;
    }
    code.push_str("];\n");
    Ok(code)
}

/// The folder that was named, or the nearest one above the output folder, or where `cargo xtask build` would put it.
fn system_folder(out: &Path) -> PathBuf {
    if let Some(named) = env::var_os(VARIABLE) {
        return PathBuf::from(named).join("system");
    }
    // OUT_DIR is <target>/[triple/]<profile>/build/<package>/out.
    let mut candidates = out.ancestors().skip(4).take(2).map(|above| above.join("guests/system"));
    let first = candidates.next().unwrap_or_default();
    if first.is_dir() { first } else { candidates.find(|folder| folder.is_dir()).unwrap_or(first) }
}

fn components(folder: &Path) -> Result<Vec<(String, PathBuf)>, Box<dyn Error>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let file = entry?.path();
        if file.extension().is_some_and(|extension| extension == "wasm") {
            let name = file.file_stem().and_then(|stem| stem.to_str()).ok_or("a component's file name is not UTF-8")?;
            found.push((name.replace("__", "/"), file));
        }
    }
    found.sort();
    Ok(found)
}
