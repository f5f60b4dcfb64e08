//! What a component's bytes tell, and what is said about bytes that are something else.

use super::*;
use crate::manifest::embed;
use crate::skew::tests::component;

const MANIFEST: &str = "path = \"acme/orders/enrich\"\nversion = \"1.0.0\"\nworld = \"transform\"\n";

fn plain(world: &str) -> Vec<u8> {
    component(world, |_, text| text.to_owned())
}

#[test]
fn a_component_shows_its_manifest_imports_and_exports() {
    let bytes = embed(&plain("transform"), MANIFEST).expect("embeds");
    let found = inspect(&bytes).expect("a component");
    assert_eq!(found.manifest_text.as_deref(), Some(MANIFEST));
    assert_eq!(found.exports, ["run"]);
    assert_eq!(found.skew, Vec::<String>::new());
    let kinds: Vec<ImportKind> = found.imports.iter().map(|import| import.kind).collect();
    // Programs are for tools alone.
    let mut of_both = Capability::ALL.iter().filter(|capability| **capability != Capability::Process);
    assert!(of_both.all(|capability| kinds.contains(&ImportKind::Capability(*capability))));
    assert!(kinds.contains(&ImportKind::Base) && !kinds.contains(&ImportKind::Unknown));
    let mut names: Vec<String> = found.imports.into_iter().map(|import| import.name).collect();
    let mut quick = import_names(&bytes).expect("a component");
    names.sort();
    quick.sort();
    assert_eq!(names, quick);
}

#[test]
fn exports_are_checked_against_the_world_of_the_manifest() {
    let bytes = embed(&plain("tool"), MANIFEST).expect("embeds");
    let skew = inspect(&bytes).expect("a component").skew;
    assert_eq!(skew.len(), 1, "{skew:?}");
    assert!(skew[0].starts_with("missing export `run`"), "{skew:?}");
    assert_eq!(inspect(&plain("tool")).expect("a component").skew, Vec::<String>::new());
}

#[test]
fn imports_are_told_apart() {
    let kind = |name: &str| Import::new(name).kind;
    assert_eq!(kind("noetl:kv/kv@0.1.0"), ImportKind::Capability(Capability::Kv));
    assert_eq!(kind("noetl:worlds/diagnostics@0.1.0"), ImportKind::Base);
    assert_eq!(kind("wasi:cli/stdout@0.2.0"), ImportKind::Wasi);
    for unknown in ["noetl:kvx/kv@0.1.0", "acme:thing/x@1.0.0", "run", "noetl:worldsx/y@0.1.0", "noetl:", ""] {
        assert_eq!(kind(unknown), ImportKind::Unknown, "{unknown:?}");
    }
    for refused in ["wasi:sockets/tcp@0.2.0", "wasi:http/outgoing-handler@0.2.0", "wasi:keyvalue/store@0.2.0-draft"] {
        assert!(Import::new(refused).refused_wasi(), "{refused}");
    }
    for linked in ["wasi:cli/stdout@0.2.0", "wasi:io/streams@0.2.0", "wasi:random/random@0.2.0", "noetl:kv/kv@0.1.0"] {
        assert!(!Import::new(linked).refused_wasi(), "{linked}");
    }
}

#[test]
fn bytes_that_are_no_component_are_named() {
    let says = |bytes: &[u8]| inspect(bytes).expect_err("no component").to_string();
    assert!(says(b"\0asm\x01\0\0\0").contains("core module, not a component: build with `noetl plugin build`"));
    assert!(says(b"#!/bin/sh").contains("not WebAssembly"));
    assert!(says(b"").contains("not WebAssembly"));
    let whole = plain("transform");
    assert!(says(&whole[..whole.len() - 3]).contains("cut short or damaged"));
}

#[test]
fn an_encoded_wit_package_is_not_a_component() {
    let resolve = crate::packages::resolve();
    let (package, _) = resolve.packages.iter().next().expect("there are packages");
    let bytes = wit_component::encode(resolve, package).expect("encodes");
    assert_eq!(inspect(&bytes), Err(InspectError::WitPackage));
}

#[test]
fn no_damage_makes_inspection_panic() {
    let whole = embed(&plain("tool"), MANIFEST).expect("embeds");
    for end in (0..whole.len()).step_by(61) {
        let _ = inspect(&whole[..end]);
    }
    // A fixed walk over the bytes: each place is bent in a way of its own.
    for at in (8..whole.len()).step_by(13) {
        let mut bent = whole.clone();
        bent[at] = bent[at].wrapping_add(1 + (at % 251) as u8);
        let _ = inspect(&bent);
    }
}
