//! Source text as a plugin: a file or a folder, packed into one component file without a build.
//!
//! A folder has a plugin.toml with `[source]`. A single file can carry its manifest in a comment at its top, in the form
//! of inline metadata that scripts use, and needs none of it:
//!
//! ```python
//! # /// noetl
//! # path = "acme/orders/enrich"
//! # capabilities = ["log", "payload", "kv"]
//! # ///
//! ```
//!
//! What it leaves out is `main/<name of the file>`, a tool, version 0.1.0 (one more than the newest there is when it is
//! pushed), `log` and `payload`.

use std::path::Path;

use noetl_contract::source;
use noetl_contract::{Manifest, PluginPath};
use toml_edit::{Array, DocumentMut, Item, Table, value};

use super::component::{Component, parse_manifest};
use crate::failure::{self, Failure, Outcome};

/// Languages by the endings of their files, and how a comment begins in them.
const LANGUAGES: [(&str, &str, &str); 4] =
    [("py", "python", "#"), ("js", "js", "//"), ("mjs", "js", "//"), ("ts", "js", "//")];

/// The version of a file that names none, where none of it was pushed yet.
pub const FIRST_VERSION: &str = "0.1.0";

/// What provenance says in the place of a toolchain.
const NOT_BUILT: &str = "source text, not built";

/// Whether it is one file of source text.
pub fn is_source_file(what: &Path) -> bool {
    what.is_file() && language_of(what).is_some()
}

fn language_of(file: &Path) -> Option<(&'static str, &'static str)> {
    let ending = file.extension()?.to_str()?;
    LANGUAGES.into_iter().find(|(known, ..)| *known == ending).map(|(_, language, comment)| (language, comment))
}

/// The manifest of a single file: what its header says and the rest by default.
pub struct FileManifest {
    pub text: String,
    pub manifest: Manifest,
    /// Whether the file itself says which version it is.
    pub versioned: bool,
}

impl FileManifest {
    pub fn read(file: &Path, path: Option<&PluginPath>) -> Outcome<Self> {
        let content = std::fs::read_to_string(file).map_err(failure::io("read", file))?;
        let (language, comment) = language_of(file)
            .ok_or_else(|| Failure::usage(format!("{} is no Python or JavaScript file", file.display())))?;
        let shown = file.display().to_string();
        let mut document: DocumentMut = header(&content, comment).parse().map_err(|error| {
            Failure::usage(format!("{shown}: the header `{comment} /// noetl` is not TOML: {error}"))
        })?;
        if let Some(path) = path {
            document["path"] = value(path.as_str());
        }
        let versioned = document.contains_key("version");
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let mut fill = |key: &str, given: Item| {
            document.entry(key).or_insert(given);
        };
        fill("path", value(format!("main/{}", path_name(name))));
        fill("version", value(FIRST_VERSION));
        fill("world", value("tool"));
        fill("capabilities", value(Array::from_iter(["log", "payload"])));
        let mut table = Table::new();
        table["language"] = value(language);
        table["entry"] = value(name);
        document["source"] = Item::Table(table);
        let text = document.to_string();
        Ok(Self { manifest: parse_manifest(&shown, &text)?, text, versioned })
    }
}

/// The text between `# /// noetl` and `# ///`, without the comment signs.
fn header(content: &str, comment: &str) -> String {
    let said = |line: &str| {
        line.trim_end().strip_prefix(comment).map(|rest| rest.strip_prefix(' ').unwrap_or(rest).to_owned())
    };
    let mut lines = content.lines().skip_while(|line| said(line).as_deref() != Some("/// noetl"));
    lines.next();
    let mut text = String::new();
    for line in lines.map_while(said).take_while(|line| line != "///") {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// `Orders (new).py` can be called `orders-new` in the catalog.
fn path_name(file: &str) -> String {
    let stem = file.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let plain: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    let plain = plain.trim_start_matches(|c: char| !c.is_ascii_lowercase()).trim_end_matches('-');
    if plain.is_empty() { "plugin".to_owned() } else { plain.to_owned() }
}

/// The plugin made of a file or of a project's folder, under a manifest.
pub fn pack(what: &Path, manifest_text: &str) -> Outcome<Component> {
    let bundle = noetl_guest_build::source::bundle(what).map_err(|error| Failure::failed(error.to_string()))?;
    let shown = what.display().to_string();
    let bytes = source::pack(manifest_text, &bundle).map_err(|error| Failure::failed(format!("{shown}: {error}")))?;
    let mut component = Component::parse(shown, bytes)?;
    component.check()?;
    let folder = if what.is_file() { what.parent().unwrap_or(what) } else { what };
    component.attestations = vec![super::attestations::of_build(&component, folder, NOT_BUILT.to_owned())];
    Ok(component)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
        let file = folder.join(name);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("folder");
        std::fs::write(&file, text).expect("file");
        file
    }

    #[test]
    fn a_file_alone_is_a_plugin() {
        let place = tempfile::tempdir().expect("folder");
        let file = write(place.path(), "My Tool.py", "def call(input): return 1\n");
        let read = FileManifest::read(&file, None).expect("a manifest");
        assert_eq!((read.manifest.path.as_str(), read.versioned), ("main/my-tool", false));
        let component = pack(&file, &read.text).expect("packs");
        let source = component.manifest.source.as_ref().expect("source");
        assert_eq!((source.language.as_str(), source.entry.as_str()), ("python", "My Tool.py"));
    }

    #[test]
    fn a_header_says_what_the_file_is() {
        let place = tempfile::tempdir().expect("folder");
        let text = "#!/usr/bin/env node\n// /// noetl\n// path = \"acme/a/b\"\n// version = \"2.0.0\"\n// world = \"transform\"\n\
                    // capabilities = [\"kv\"]\n//\n// [limits]\n// cpu_ms = 5\n// ///\nexport function call() {}\n";
        let file = write(place.path(), "x.mjs", text);
        let read = FileManifest::read(&file, None).expect("a manifest");
        assert_eq!((read.manifest.path.as_str(), read.versioned, read.manifest.limits.cpu_ms), ("acme/a/b", true, 5));
        assert_eq!(read.manifest.capabilities.to_string(), "kv");
        let other = FileManifest::read(&file, Some(&PluginPath::new("acme/c").expect("valid"))).expect("a manifest");
        assert_eq!(other.manifest.path.as_str(), "acme/c");
    }

    #[test]
    fn a_folder_is_packed_without_what_is_not_the_plugin() {
        let place = tempfile::tempdir().expect("folder");
        let manifest = "path = \"acme/a\"\nversion = \"1.0.0\"\nworld = \"transform\"\n[source]\nlanguage = \"python\"\n\
                        entry = \"main.py\"\n";
        for name in ["main.py", "lib/a.py", "plugin.toml", "cases/x.case", ".noetl/python/noetl/kv.py", "tests/t.py"] {
            write(place.path(), name, "");
        }
        let packed = pack(place.path(), manifest).expect("packs");
        let bundle = source::extract(&packed.bytes).expect("reads").expect("a bundle");
        assert_eq!(bundle.files().map(|(path, _)| path).collect::<Vec<_>>(), ["lib/a.py", "main.py"]);
        let failure = pack(place.path(), &manifest.replace("main.py", "other.py")).expect_err("no entry");
        assert!(failure.message.contains("not among its files"), "{failure}");
    }
}
