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
    comment: &'static str,
}

impl FileManifest {
    pub fn read(file: &Path, path: Option<&PluginPath>) -> Outcome<Self> {
        let content = text_of(file)?;
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
        let name = file.file_name().and_then(|name| name.to_str()).ok_or_else(|| {
            Failure::usage(format!("{shown} has a name that is not UTF-8")).next("give the file another name")
        })?;
        if !document.contains_key("path") {
            document["path"] = value(format!("main/{}", path_name(name, comment)?));
        }
        let mut fill = |key: &str, given: Item| {
            document.entry(key).or_insert(given);
        };
        fill("version", value(FIRST_VERSION));
        fill("world", value("tool"));
        fill("capabilities", value(Array::from_iter(["log", "payload"])));
        let mut table = Table::new();
        table["language"] = value(language);
        table["entry"] = value(name);
        document["source"] = Item::Table(table);
        let text = document.to_string();
        Ok(Self { manifest: parse_manifest(&shown, &text)?, text, versioned, comment })
    }
}

impl FileManifest {
    /// The refusal of a file where nobody can say which version comes next.
    pub fn needs_version(&self, file: &Path) -> Failure {
        let comment = self.comment;
        Failure::usage(format!("{} does not say which version it is, and a registry needs one", file.display())).next(
            format!(
                "write it at the top of the file:\n{comment} /// noetl\n{comment} version = \"{}\"\n{comment} ///",
                self.manifest.version
            ),
        )
    }
}

/// The whole file, without the mark of the order of its bytes that some editors put at the beginning.
fn text_of(file: &Path) -> Outcome<String> {
    let bytes = std::fs::read(file).map_err(failure::io("read", file))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count();
        Failure::usage(format!("{} is not UTF-8: line {line} has other bytes", file.display()))
            .next("save it as UTF-8, or convert it: iconv -f latin1 -t utf-8 OLD > NEW")
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
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

/// `My Tool.py` is `my-tool` in the catalog. A name that would have to be changed more than that is not guessed at: two
/// files could come to the same one, and push over each other.
fn path_name(file: &str, comment: &str) -> Outcome<String> {
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let name: String = stem.to_ascii_lowercase().chars().map(|c| if c == ' ' { '-' } else { c }).collect();
    let fits = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if fits && PluginPath::new(format!("main/{name}")).is_ok() {
        return Ok(name);
    }
    Err(Failure::usage(format!("`{file}` cannot be the name of a plugin as it is")).next(format!(
        "name one: --path main/NAME, or at the top of the file\n{comment} /// noetl\n{comment} path = \"main/NAME\"\n\
         {comment} ///"
    )))
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
    fn a_name_that_does_not_fit_is_asked_for() {
        let place = tempfile::tempdir().expect("folder");
        for name in ["Orders (new).py", "größe.py", "1st.py", "a.b.py", "-.py"] {
            let file = write(place.path(), name, "");
            let refused = FileManifest::read(&file, None).err().expect("no name");
            assert!(refused.next.expect("advice").contains("--path"), "{name}");
            let path = PluginPath::new("main/a").expect("valid");
            assert!(FileManifest::read(&file, Some(&path)).is_ok(), "{name}");
        }
        let file = write(place.path(), "a.b.js", "// /// noetl\n// path = \"main/b\"\n// ///\n");
        assert!(FileManifest::read(&file, None).is_ok());
    }

    #[test]
    fn a_version_that_is_missing_is_asked_for_in_the_languages_own_words() {
        let place = tempfile::tempdir().expect("folder");
        let file = write(place.path(), "a.js", "");
        let refused = FileManifest::read(&file, None).expect("a manifest").needs_version(&file);
        let advice = refused.next.expect("advice");
        assert!(advice.contains("// /// noetl\n// version = \"0.1.0\"\n// ///"), "{advice}");
    }

    #[test]
    fn a_mark_of_the_byte_order_is_no_text_and_other_bytes_are_told() {
        let place = tempfile::tempdir().expect("folder");
        let file = write(place.path(), "a.py", "\u{feff}# /// noetl\n# version = \"2.0.0\"\n# ///\n");
        assert!(FileManifest::read(&file, None).expect("a manifest").versioned);
        std::fs::write(&file, b"x = 1\ny = '\xe9'\n").expect("file");
        let refused = FileManifest::read(&file, None).err().expect("not UTF-8");
        assert!(refused.message.contains("line 2") && refused.next.is_some(), "{refused}");
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
        let own = ["lib/a.py", "main.py", "vendor/x/README.md", "vendor/x/tests/t.py"];
        let left = ["plugin.toml", "cases/x.case", ".noetl/python/noetl/kv.py", "tests/t.py", "lib/__pycache__/a.pyc"];
        for name in own.iter().chain(&left) {
            write(place.path(), name, "");
        }
        let packed = pack(place.path(), manifest).expect("packs");
        let bundle = source::extract(&packed.bytes).expect("reads").expect("a bundle");
        assert_eq!(bundle.files().map(|(path, _)| path).collect::<Vec<_>>(), own);
        let failure = pack(place.path(), &manifest.replace("main.py", "other.py")).expect_err("no entry");
        assert!(failure.message.contains("not among its files"), "{failure}");
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("/etc/hostname", place.path().join("lib/link.txt")).expect("links");
            let failure = pack(place.path(), manifest).expect_err("a link");
            assert!(failure.message.contains("link.txt is a link"), "{failure}");
        }
    }
}
