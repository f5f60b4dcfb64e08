//! Real builds of small guests. They need the guest toolchain (`cargo xtask setup`).
//!
//! The target folders are kept between runs, so that the standard library is compiled once; the guests are in fresh
//! folders, so that they are compiled every time.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use noetl_guest_build::{BuildError, BuildRequest, BuildTarget, build};
use tempfile::TempDir;

const MANIFEST: &str = "path = \"acme/demo/greet\"\nversion = \"1.0.0\"\nworld = \"transform\"\n";

/// A guest whose code panics with places in its own, the standard library's and a dependency's source.
fn guest(text: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("temporary folder");
    let write = |path: &str, content: String| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("has a folder")).expect("folder");
        fs::write(&path, content).expect("file");
        // As if checked out long ago: the times of the files say nothing about who built last.
        let old = SystemTime::now() - Duration::from_secs(86_400);
        fs::File::options().write(true).open(&path).expect("open").set_modified(old).expect("set time");
    };
    write(
        "Cargo.toml",
        "[package]\nname = \"greet\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
         [lib]\ncrate-type = [\"cdylib\"]\n[features]\nloud = []\n[workspace]\n\
         [dependencies]\nwords = { path = \"words\" }\n"
            .to_owned(),
    );
    write("words/Cargo.toml", "[package]\nname = \"words\"\nversion = \"0.1.0\"\nedition = \"2024\"\n".to_owned());
    write(
        "words/src/lib.rs",
        format!("pub fn word(index: usize) -> &'static str {{ [\"word of {text}\", \"second\"][index] }}\n"),
    );
    write(
        "src/lib.rs",
        format!(
            "use std::collections::HashMap;\n\
             #[unsafe(no_mangle)]\npub extern \"C\" fn answer(index: usize) -> usize {{\n\
             let loud = if cfg!(feature = \"loud\") {{ \"LOUD\" }} else {{ \"calm\" }};\n\
             let map: HashMap<_, _> = [(index, format!(\"{text} {{loud}} {{}}\", words::word(index)))].into();\n\
             map.get(&index).expect(\"just put there\").len()\n}}\n"
        ),
    );
    folder
}

fn target_folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn request(guest: &TempDir, target_dir: &str) -> BuildRequest {
    BuildRequest { target_dir: Some(target_folder(target_dir)), quiet: true, ..BuildRequest::new(guest.path()) }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn the_same_sources_give_the_same_bytes_wherever_they_are_built() {
    let (here, there) = (guest("same"), guest("same"));
    let first = build(&request(&here, "guests-a")).expect("build").component;
    let second = build(&request(&there, "guests-b")).expect("build").component;
    assert!(first == second, "two builds of the same sources differ ({} and {} bytes)", first.len(), second.len());
    assert!(contains(&first, "src/lib.rs"), "no source path at all: this guest cannot show a leak");
    let cargo_home = std::env::var("CARGO_HOME").or_else(|_| std::env::var("HOME")).expect("a home");
    for leak in
        [here.path().to_str().expect("UTF-8"), env!("CARGO_TARGET_TMPDIR"), &cargo_home, "/usr/lib/rustlib", ".rustup"]
    {
        assert!(!contains(&first, leak), "the component contains {leak}");
    }
}

#[test]
fn projects_of_one_name_do_not_get_each_others_output() {
    let (one, two) = (guest("first project"), guest("second project"));
    for (project, own, other) in [(&one, "first", "second"), (&two, "second", "first"), (&one, "first", "second")] {
        let component = build(&request(project, "guests-a")).expect("build").component;
        for part in [format!("{own} project "), format!("word of {own} project")] {
            assert!(contains(&component, &part), "the component lacks {part:?}");
        }
        assert!(!contains(&component, &format!("{other} project")), "{own} got a part of {other}");
    }
}

#[test]
fn features_are_builds_of_their_own() {
    let project = guest("features");
    let loud = BuildRequest { features: vec!["loud".to_owned()], ..request(&project, "guests-a") };
    for (request, word) in
        [(request(&project, "guests-a"), "calm"), (loud, "LOUD"), (request(&project, "guests-a"), "calm")]
    {
        let component = build(&request).expect("build").component;
        assert!(contains(&component, word), "the component lacks {word:?}");
    }
}

#[test]
fn a_changed_source_changes_the_component() {
    let project = guest("edited");
    let before = build(&request(&project, "guests-a")).expect("build").component;
    let file = project.path().join("src/lib.rs");
    let text = fs::read_to_string(&file).expect("source").replace("calm", "mild");
    fs::write(&file, text).expect("edit");
    let after = build(&request(&project, "guests-a")).expect("build").component;
    assert!(contains(&before, "calm") && contains(&after, "mild") && !contains(&after, "calm"));
}

#[test]
fn both_targets_give_a_component_with_the_manifest_inside() {
    for target in [BuildTarget::Unknown, BuildTarget::Wasip2] {
        let project = guest("manifest");
        let text = format!("{MANIFEST}[build]\ntarget = \"{}\"\n", target.name());
        fs::write(project.path().join("plugin.toml"), &text).expect("manifest");
        let built = build(&request(&project, "guests-a")).expect("build");
        assert_eq!(built.target, target);
        let inside = noetl_contract::manifest::extract(&built.component).expect("a component");
        assert_eq!(inside.as_deref(), Some(text.as_str()));
        assert_eq!(built.manifest.expect("parsed").path.as_str(), "acme/demo/greet");
    }
}

#[test]
fn mistakes_are_named_before_or_after_the_compiler_as_they_should_be() {
    let empty = tempfile::tempdir().expect("temporary folder");
    assert!(matches!(build(&BuildRequest::new(empty.path())), Err(BuildError::NoCrate(_))));

    let bad_manifest = guest("bad");
    fs::write(bad_manifest.path().join("plugin.toml"), "path = 3\n").expect("manifest");
    assert!(matches!(build(&request(&bad_manifest, "guests-a")), Err(BuildError::Manifest { .. })));

    let bad_code = guest("bad");
    fs::write(bad_code.path().join("src/lib.rs"), "fn broken(").expect("source");
    assert!(matches!(build(&request(&bad_code, "guests-a")), Err(BuildError::Cargo { step: "build", .. })));

    let no_module = guest("bad");
    let cargo = no_module.path().join("Cargo.toml");
    let text = fs::read_to_string(&cargo).expect("Cargo.toml").replace("cdylib", "rlib");
    fs::write(&cargo, text).expect("Cargo.toml");
    assert!(matches!(build(&request(&no_module, "guests-a")), Err(BuildError::NoModule(_))));
}
