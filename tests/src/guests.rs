//! Components for tests: built once, then changed without a compiler.

use std::path::PathBuf;

use noetl_contract::manifest::{extract, replace};

/// A built guest of `tests/guests`.
pub fn guest(name: &str) -> Vec<u8> {
    built("test", name)
}

/// A component that is built into the command, by its path.
pub fn system_guest(path: &str) -> Vec<u8> {
    built("system", &path.replace('/', "__"))
}

fn built(kind: &str, name: &str) -> Vec<u8> {
    let folder = std::env::var_os("NOETL_GUESTS_DIR").expect("NOETL_GUESTS_DIR is set by `cargo xtask test`");
    let file = PathBuf::from(folder).join(kind).join(format!("{name}.wasm"));
    std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}: run `cargo xtask build`", file.display()))
}

/// The component with another manifest.
pub fn with_manifest(component: &[u8], manifest: &str) -> Vec<u8> {
    replace(component, manifest).expect("the guest is a component")
}

/// The same code as another version: nothing but the manifest's version changes, and with it the digest.
pub fn with_version(component: &[u8], version: &str) -> Vec<u8> {
    let manifest = extract(component).expect("the guest is a component").expect("a built guest has a manifest");
    let changed: Vec<String> = manifest
        .lines()
        .map(|line| if line.starts_with("version = ") { format!("version = \"{version}\"") } else { line.to_owned() })
        .collect();
    with_manifest(component, &(changed.join("\n") + "\n"))
}

/// The guest `versioned` with another marker, so that its bytes and its answers differ.
pub fn with_marker(component: &[u8], number: u32) -> Vec<u8> {
    const MARKER: &[u8] = b"NOETL-MARKER-";
    let mut changed = component.to_vec();
    let at = changed.windows(MARKER.len()).position(|window| window == MARKER).expect("the guest has a marker");
    let digits = at + MARKER.len()..at + MARKER.len() + 6;
    changed[digits].copy_from_slice(format!("{number:06}").as_bytes());
    changed
}
