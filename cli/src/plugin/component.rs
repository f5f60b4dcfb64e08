//! A component as the command sees it: bytes, manifest, imports and exports.
//!
//! What a component imports and exports is read by the contract crate, as the server does it, so both see the same.
//!
//! Bad input: bytes come from an author's disk or from a server, so every read of them can fail and says which
//! file or plugin it was.

use std::path::Path;

use noetl_contract::{Capability, CapabilitySet, Digest, Manifest, PluginPath, inspect, source};
use noetl_registry::signatures::Envelope;

use crate::failure::{self, Exit, Failure, Outcome};

/// What to read when a manifest is wrong.
pub const MANIFEST_HELP: &str = "`noetl plugin manifest-docs` describes every option";

/// More files than these are no help to whoever looks for one.
const MOST_NAMED: usize = 8;

#[derive(Debug, Clone)]
pub struct Component {
    /// What it was called on the command line.
    pub name: String,
    pub bytes: Vec<u8>,
    pub manifest: Manifest,
    pub imports: Vec<String>,
    pub exports: Vec<String>,
    /// Where it differs from the contract this command knows; empty when it fits.
    pub skew: Vec<String>,
    /// What is known about where it comes from, and who has signed it.
    pub attestations: Vec<Envelope>,
}

impl Component {
    /// A file, with the attestations that lie beside it.
    pub fn read(file: &Path) -> Outcome<Self> {
        let bytes = std::fs::read(file).map_err(failure::io("read the component", file))?;
        let mut component = Self::parse(file.display().to_string(), bytes)?;
        component.attestations = super::attestations::read_beside(file, &component.digest())?;
        Ok(component)
    }

    pub fn parse(name: String, bytes: Vec<u8>) -> Outcome<Self> {
        let wrong = |what: String| Failure::failed(format!("{name}: {what}"));
        let inspection = inspect::inspect(&bytes).map_err(|error| wrong(error.to_string()))?;
        let manifest_text = inspection.manifest_text.ok_or_else(|| {
            wrong("the component has no manifest in it".to_owned())
                .next("build it with `noetl plugin build`, which embeds plugin.toml")
        })?;
        let manifest = parse_manifest(&name, &manifest_text)?;
        let imports = inspection.imports.into_iter().map(|import| import.name).collect();
        let (exports, skew) = (inspection.exports, inspection.skew);
        Ok(Self { name, bytes, manifest, imports, exports, skew, attestations: Vec::new() })
    }

    pub fn digest(&self) -> Digest {
        Digest::of(&self.bytes)
    }

    /// What the code itself imports of the contract, whatever the manifest says.
    pub fn imported(&self) -> CapabilitySet {
        self.imports.iter().filter_map(|import| Capability::of_import(import)).collect()
    }

    /// What a server would refuse the push for, told before anything is sent.
    pub fn check(&self) -> Outcome {
        if !self.skew.is_empty() {
            return Err(Failure::failed(format!(
                "{}: the component does not fit the contract:\n{}",
                self.name,
                self.skew.join("\n")
            ))
            .next(self.how_to_fit()));
        }
        let missing = self.imported().minus(self.manifest.capabilities);
        if missing.is_empty() {
            return Ok(());
        }
        let imports: Vec<_> = self
            .imports
            .iter()
            .filter(|import| Capability::of_import(import).is_some_and(|capability| missing.contains(capability)))
            .map(String::as_str)
            .collect();
        Err(Failure::failed(format!(
            "{}: the code imports {}, but plugin.toml does not ask for {missing}",
            self.name,
            imports.join(", ")
        ))
        .next(format!(
            "add it to plugin.toml: capabilities = {}",
            toml_list(self.imported(), self.manifest.capabilities)
        )))
    }
}

impl Component {
    /// What helps depends on what was built: source text was not.
    fn how_to_fit(&self) -> String {
        let Some(wanted) = &self.manifest.source else {
            return "build it against the contract of this command: `noetl plugin new` vendors it".to_owned();
        };
        let files = source::extract(&self.bytes).ok().flatten().unwrap_or_default();
        if files.get(&wanted.entry).is_some() {
            return MANIFEST_HELP.to_owned();
        }
        let own = files.files().map(|(path, _)| path).filter(|path| !path.starts_with("vendor/"));
        let (alike, others): (Vec<&str>, Vec<&str>) = own.partition(|path| ending(path) == ending(&wanted.entry));
        match alike.into_iter().chain(others).take(MOST_NAMED).collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => "write the file that `source.entry` names: there is no other one".to_owned(),
            names => format!("set `source.entry` to one of: {names}"),
        }
    }
}

fn ending(path: &str) -> Option<&str> {
    path.rsplit_once('.').map(|(_, ending)| ending)
}

fn toml_list(imported: CapabilitySet, asked: CapabilitySet) -> String {
    let names: Vec<_> = Capability::ALL
        .into_iter()
        .filter(|capability| imported.contains(*capability) || asked.contains(*capability))
        .map(|capability| format!("\"{capability}\""))
        .collect();
    format!("[{}]", names.join(", "))
}

/// Reads a manifest's text; everything wrong with it in one failure.
pub fn parse_manifest(name: &str, text: &str) -> Outcome<Manifest> {
    Manifest::parse(text).map_err(|errors| {
        Failure::new(Exit::Usage, format!("{name}: the manifest is wrong:\n{errors}")).next(MANIFEST_HELP)
    })
}

/// The manifest of a project's folder or of a single file of source text, and its text.
/// `path` is where a file lives that does not say it itself.
pub fn project_manifest(folder: &Path, path: Option<&PluginPath>) -> Outcome<(Manifest, String)> {
    if super::pack::is_source_file(folder) {
        let read = super::pack::FileManifest::read(folder, path)?;
        return Ok((read.manifest, read.text));
    }
    if path.is_some() {
        return Err(Failure::usage("--path is for a single file of source text").next("write `path` in plugin.toml"));
    }
    let file = folder.join("plugin.toml");
    let text = std::fs::read_to_string(&file).map_err(|error| {
        failure::io("read", &file)(error).next("name a plugin project, such as one made by `noetl plugin new`")
    })?;
    Ok((parse_manifest(&file.display().to_string(), &text)?, text))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A component without code that has the given manifest.
    pub fn empty(manifest_text: &str) -> Component {
        let bytes = noetl_contract::manifest::embed(b"\0asm\x0d\0\x01\0", manifest_text).expect("embeds");
        Component::parse("test".to_owned(), bytes).expect("parses")
    }

    #[test]
    fn a_component_carries_its_manifest() {
        let component = empty("path = \"acme/a\"\nversion = \"1.0.0\"\nworld = \"transform\"\n");
        assert_eq!(component.manifest.path.as_str(), "acme/a");
        assert!(component.imports.is_empty() && component.imported().is_empty());
        let failure = component.check().expect_err("it exports nothing");
        assert!(failure.message.contains("does not fit the contract"), "{failure}");
    }

    #[test]
    fn an_import_the_manifest_does_not_ask_for_is_named_with_what_to_write() {
        let mut component =
            empty("path = \"acme/a\"\nversion = \"1.0.0\"\nworld = \"transform\"\ncapabilities = [\"log\"]\n");
        component.skew.clear();
        component.imports = vec!["noetl:kv/kv@0.1.0".to_owned(), "noetl:log/log@0.1.0".to_owned()];
        let failure = component.check().expect_err("kv is not asked for");
        assert!(failure.message.contains("noetl:kv/kv@0.1.0"), "{failure}");
        assert!(failure.next.expect("a hint").contains("[\"log\", \"kv\"]"));
    }

    #[test]
    fn bytes_that_are_no_component_are_refused() {
        for bad in [&b""[..], b"hello", b"\0asm\x01\0\0\0", b"\0asm\x0d\0\x01\0"] {
            assert!(Component::parse("x".to_owned(), bad.to_vec()).is_err(), "{bad:?}");
        }
    }
}
