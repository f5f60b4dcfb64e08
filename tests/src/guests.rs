//! Components for tests: built once, then changed without a compiler.

use std::path::PathBuf;

use noetl_contract::manifest::{SECTION, embed};

/// A built guest of `tests/guests`.
pub fn guest(name: &str) -> Vec<u8> {
    let folder = std::env::var_os("NOETL_GUESTS_DIR").expect("NOETL_GUESTS_DIR is set by `cargo xtask test`");
    let file = PathBuf::from(folder).join("test").join(format!("{name}.wasm"));
    std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}: run `cargo xtask build`", file.display()))
}

/// The component with another manifest.
pub fn with_manifest(component: &[u8], manifest: &str) -> Vec<u8> {
    embed(&without_manifest(component), manifest).expect("the guest is a component")
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

/// Sections of a component are a byte of kind, a length and that many bytes; a custom one starts with its name.
fn without_manifest(component: &[u8]) -> Vec<u8> {
    const HEAD: usize = 8;
    let mut kept = component[..HEAD].to_vec();
    let mut at = HEAD;
    while at < component.len() {
        let (length, body) = number(component, at + 1);
        let end = body + length;
        let (name_length, name) = number(component, body);
        let is_manifest = component[at] == 0 && component[name..].get(..name_length) == Some(SECTION.as_bytes());
        if !is_manifest {
            kept.extend_from_slice(&component[at..end]);
        }
        at = end;
    }
    kept
}

/// A LEB128 number and the place behind it.
fn number(bytes: &[u8], mut at: usize) -> (usize, usize) {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[at];
        value |= usize::from(byte & 0x7f) << shift;
        at += 1;
        shift += 7;
        if byte & 0x80 == 0 {
            return (value, at);
        }
    }
}
