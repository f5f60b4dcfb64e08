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
//! What it leaves out is `main/<name of the file>` (with a tenant's token, the tenant in the place of `main` when it is
//! pushed), a tool, version 0.1.0 (one more than the newest there is when it is pushed), `log` and `payload`.

use std::path::Path;

use noetl_contract::manifest::{ManifestErrors, Problem};
use noetl_contract::source;
use noetl_contract::{Manifest, PluginPath};
use toml_edit::{Array, DocumentMut, Item, Table, value};

use super::component::{Component, MANIFEST_HELP};
use crate::failure::{self, Failure, Outcome};

/// Languages by the endings of their files, and how a comment begins in them.
const LANGUAGES: [(&str, &str, &str); 5] =
    [("py", "python", "#"), ("js", "js", "//"), ("mjs", "js", "//"), ("cjs", "js", "//"), ("ts", "js", "//")];

/// The version of a file that names none, where none of it was pushed yet.
pub const FIRST_VERSION: &str = "0.1.0";

/// What a header may leave out.
const FILLED: [&str; 4] = ["path", "version", "world", "capabilities"];

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
    /// Whether the file, or whoever named it, says where it lives.
    pub placed: bool,
    comment: &'static str,
}

impl FileManifest {
    pub fn read(file: &Path, path: Option<&PluginPath>) -> Outcome<Self> {
        let content = text_of(file)?;
        let (language, comment) = language_of(file)
            .ok_or_else(|| Failure::usage(format!("{} is no Python or JavaScript file", file.display())))?;
        let shown = file.display().to_string();
        let header = Header::of(&content, comment);
        let mut document = header.text.parse::<DocumentMut>().map_err(|error| header.not_toml(&shown, &error))?;
        let missing: Vec<&str> = FILLED.into_iter().filter(|key| !document.contains_key(key)).collect();
        let has_source = document.contains_key("source");
        if let Some(path) = path {
            document["path"] = value(path.as_str());
        }
        let versioned = document.contains_key("version");
        let placed = document.contains_key("path");
        let name = file.file_name().and_then(|name| name.to_str()).ok_or_else(|| {
            Failure::usage(format!("{shown} has a name that is not UTF-8")).next("give the file another name")
        })?;
        if !placed {
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
        let manifest = Manifest::parse(&text).map_err(|errors| {
            let filled: String = missing.iter().map(|key| format!("{key} = {}\n", document[*key])).collect();
            let source = format!("[source]\nlanguage = {}\nentry = {}\n", value(language), value(name));
            header.wrong(&shown, &errors, &filled, if has_source { "" } else { &source })
        })?;
        Ok(Self { manifest, text, versioned, placed, comment })
    }

    /// The last part of where it lives.
    pub fn name(&self) -> &str {
        let path = self.manifest.path.as_str();
        path.rsplit_once('/').map_or(path, |(_, name)| name)
    }

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
struct Header {
    text: String,
    /// Lines of the file before the first one of the text.
    before: usize,
    /// How many characters of the comment stand before each line.
    signs: Vec<usize>,
}

impl Header {
    /// An empty one where the file has none.
    fn of(content: &str, comment: &str) -> Self {
        let said = |line: &str| {
            let line = line.trim_end();
            let rest = line.strip_prefix(comment)?;
            let rest = rest.strip_prefix(' ').unwrap_or(rest);
            Some((line.len() - rest.len(), rest.to_owned()))
        };
        let mut header = Self { text: String::new(), before: 0, signs: Vec::new() };
        let begins = |line: &str| said(line).is_some_and(|(_, text)| text == "/// noetl");
        let Some(at) = content.lines().position(begins) else { return header };
        header.before = at + 1;
        for (signs, line) in content.lines().skip(at + 1).map_while(said).take_while(|(_, line)| line != "///") {
            header.signs.push(signs);
            header.text.push_str(&line);
            header.text.push('\n');
        }
        header
    }

    /// Where a place of the text is in the file.
    fn place(&self, line: usize, column: usize) -> Option<(usize, usize)> {
        let signs = self.signs.get(line.checked_sub(1)?)?;
        Some((self.before + line, signs + column))
    }

    /// What is wrong, told by the lines of the file. What was filled in moves the lines of the text about, so the text is
    /// read once more with all of that above and below it.
    fn wrong(&self, shown: &str, errors: &ManifestErrors, above: &str, below: &str) -> Failure {
        let whole = format!("{above}{}{below}", self.text);
        let found = Manifest::parse(&whole).err().map(|errors| errors.0).unwrap_or_default();
        let lines_above = above.lines().count();
        let place = |problem: &Problem| {
            let same = found.iter().find(|other| other.key == problem.key && other.message == problem.message)?;
            self.place(same.line.checked_sub(lines_above)?, same.column)
        };
        let told: Vec<String> = errors.0.iter().map(|problem| problem.in_file(shown, place(problem))).collect();
        Failure::usage(format!("{shown}: what its header says is wrong:\n{}", told.join("\n"))).next(MANIFEST_HELP)
    }

    fn not_toml(&self, shown: &str, error: &toml_edit::TomlError) -> Failure {
        match Manifest::parse(&self.text) {
            Err(errors) => self.wrong(shown, &errors, "", ""),
            // The two readers are of one family; should one take what the other does not, its own words are told.
            Ok(_) => Failure::usage(format!("{shown}: its header is not TOML: {}", error.message())),
        }
    }
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
    fn what_is_wrong_in_a_header_is_told_by_the_lines_of_the_file() {
        let place = tempfile::tempdir().expect("folder");
        let header = "#!/usr/bin/env python\n# /// noetl\n# world = \"transfrom\"\n#\n# [limits]\n# cpu_ms = 0\n\
                      #wall_ms = 0\n# ///\n";
        let file = write(place.path(), "x.py", header);
        let refused = FileManifest::read(&file, None).err().expect("wrong");
        for at in ["x.py:3:11: ", "x.py:6:12: ", "x.py:7:12: "] {
            assert!(refused.message.contains(at), "{at} is not in {refused}");
        }
        assert!(!refused.message.contains("plugin.toml"), "{refused}");
        // What is wrong only together with what was filled in: a tool takes payloads.
        let file = write(place.path(), "y.py", "x = 1\n# /// noetl\n# capabilities = [\"log\"]\n# ///\n");
        let refused = FileManifest::read(&file, None).err().expect("wrong");
        assert!(refused.message.contains("y.py:3:"), "{refused}");
        let file = write(place.path(), "z.js", "// /// noetl\n// version = 1.2.3\n// ///\n");
        let refused = FileManifest::read(&file, None).err().expect("no TOML");
        assert!(refused.message.contains("z.js:2:") && refused.message.contains("not TOML"), "{refused}");
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
        assert_eq!(failure.next.as_deref(), Some("set `source.entry` to one of: lib/a.py, main.py"));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("/etc/hostname", place.path().join("lib/link.txt")).expect("links");
            let failure = pack(place.path(), manifest).expect_err("a link");
            assert!(failure.message.contains("link.txt is a link"), "{failure}");
        }
    }
}
