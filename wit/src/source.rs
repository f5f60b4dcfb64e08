//! A plugin that is source text: its files, in a component without code.
//!
//! A plugin stays one file with one digest. The files are a tar archive in the custom section `noetl:source`: sorted,
//! without times and owners, so that the same files are the same bytes on every machine. Which interpreter runs them is
//! in the manifest; nothing of it is in here.
//!
//! Bad input: an archive comes from anyone. Its size and number of files are bounded before it is read, and a path in it
//! never leads out of the plugin's folder, though nobody writes it to a disk.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::Read;

use wasmparser::Payload;
use wit_parser::{World as WitWorld, WorldItem};

use crate::manifest::SourcePolicy;
use crate::manifest::section::{SectionError, append, embed, walk};

/// Name of the section.
pub const SECTION: &str = "noetl:source";

/// Largest archive in bytes. A bundle is handed to every sandbox anew, so a larger one would be slow as well.
pub const MAX_BYTES: usize = 16 << 20;
pub const MAX_FILES: usize = 5_000;

/// The preamble of a component that has nothing in it.
const EMPTY_COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    #[error(transparent)]
    Section(#[from] SectionError),
    #[error("the component has two `noetl:source` sections: pack it again with `noetl plugin build`")]
    Twice,
    #[error("the plugin's files have {0} bytes together, more than the {MAX_BYTES} they may have")]
    TooLarge(usize),
    #[error("the plugin has more than {MAX_FILES} files")]
    TooMany,
    #[error("the plugin has two files `{0}`")]
    Duplicate(String),
    #[error("it is source text, yet has {0} in it: pack it with `noetl plugin build`")]
    NotOnlySource(&'static str),
    #[error(
        "`{0}` cannot be the path of a file in a plugin: use relative paths with `/`, without `..` and control characters"
    )]
    InvalidPath(String),
    #[error("the archive of the plugin's files cannot be read: {0}")]
    Damaged(String),
}

/// The files of a plugin, by path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bundle(BTreeMap<String, Vec<u8>>);

impl Bundle {
    pub fn add(&mut self, path: impl Into<String>, content: Vec<u8>) -> Result<(), SourceError> {
        let path = path.into();
        if !is_path(&path) {
            return Err(SourceError::InvalidPath(path));
        }
        match self.0.entry(path) {
            Entry::Occupied(taken) => return Err(SourceError::Duplicate(taken.key().clone())),
            Entry::Vacant(free) => {
                free.insert(content);
            }
        }
        let size = self.0.values().map(Vec::len).sum();
        match (self.0.len() > MAX_FILES, size > MAX_BYTES) {
            (true, _) => Err(SourceError::TooMany),
            (_, true) => Err(SourceError::TooLarge(size)),
            _ => Ok(()),
        }
    }

    pub fn get(&self, path: &str) -> Option<&[u8]> {
        self.0.get(path).map(Vec::as_slice)
    }

    /// In the order of their paths.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(path, content)| (path.as_str(), content.as_slice()))
    }

    fn to_archive(&self) -> std::io::Result<Vec<u8>> {
        let mut archive = tar::Builder::new(Vec::new());
        archive.mode(tar::HeaderMode::Deterministic);
        for (path, content) in &self.0 {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            archive.append_data(&mut header, path, content.as_slice())?;
        }
        archive.into_inner()
    }

    fn from_archive(bytes: &[u8]) -> Result<Self, SourceError> {
        let damaged = |error: std::io::Error| SourceError::Damaged(error.to_string());
        let mut bundle = Self::default();
        for entry in tar::Archive::new(bytes).entries().map_err(damaged)? {
            let mut entry = entry.map_err(damaged)?;
            let path = std::str::from_utf8(&entry.path_bytes())
                .map(str::to_owned)
                .map_err(|_| SourceError::InvalidPath(String::from_utf8_lossy(&entry.path_bytes()).into_owned()))?;
            if entry.header().entry_type() != tar::EntryType::Regular {
                return Err(SourceError::Damaged(format!("`{path}` is not a plain file")));
            }
            let mut content = Vec::new();
            // The archive itself is bounded, and a plain file in it is no longer than what is there of it.
            entry.read_to_end(&mut content).map_err(damaged)?;
            bundle.add(path, content)?;
        }
        Ok(bundle)
    }
}

fn is_path(path: &str) -> bool {
    let part = |part: &str| !part.is_empty() && part != "." && part != "..";
    path.len() <= 255 && !path.contains(|c: char| c == '\\' || c.is_control()) && path.split('/').all(part)
}

/// The plugin as one file: the manifest and the files, and no code.
pub fn pack(manifest_text: &str, bundle: &Bundle) -> Result<Vec<u8>, SourceError> {
    let archive = bundle.to_archive().map_err(|error| SourceError::Damaged(error.to_string()))?;
    Ok(embed(&append(EMPTY_COMPONENT, SECTION, &archive), manifest_text)?)
}

/// The files of a component, if it has any.
pub fn extract(component: &[u8]) -> Result<Option<Bundle>, SourceError> {
    let mut archive = None;
    let (mut twice, mut code) = (false, None);
    walk(component, |payload| {
        match payload {
            Payload::CustomSection(section) if section.name() == SECTION => {
                twice |= archive.replace(section.data()).is_some();
            }
            Payload::CustomSection(_) | Payload::Version { .. } | Payload::End(_) => {}
            _ => code = Some("code or types"),
        }
        Ok(())
    })?;
    match (archive, code) {
        _ if twice => Err(SourceError::Twice),
        (None, _) => Ok(None),
        (Some(_), Some(what)) => Err(SourceError::NotOnlySource(what)),
        (archive, None) => archive.map(unpacked).transpose(),
    }
}

fn unpacked(archive: &[u8]) -> Result<Bundle, SourceError> {
    match archive.len() {
        // Headers and padding of many small files take more than the files.
        size if size > MAX_BYTES + MAX_FILES * 2_048 => Err(SourceError::TooLarge(size)),
        _ => Bundle::from_archive(archive),
    }
}

/// Where a component disagrees with what its manifest says of its source.
pub fn differences(wanted: &SourcePolicy, bundle: Option<&Bundle>, world: &WitWorld) -> Vec<String> {
    let mut lines = Vec::new();
    match bundle {
        None => lines.push(format!("it is to be run as {}, but has no files in it", wanted.language)),
        Some(bundle) if bundle.get(&wanted.entry).is_none() => {
            lines.push(format!("`source.entry` names `{}`, which is not among its files", wanted.entry));
        }
        Some(_) => {}
    }
    let code = |item: &WorldItem| !matches!(item, WorldItem::Type { .. });
    if world.imports.values().chain(world.exports.values()).any(code) {
        lines
            .push("it is source text, yet has imports or exports of its own: pack it with `noetl plugin build`".into());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "path = \"acme/a\"\nversion = \"1.0.0\"\nworld = \"transform\"\n[source]\n\
                            language = \"python\"\nentry = \"main.py\"\n";

    fn bundle(files: &[(&str, &str)]) -> Bundle {
        let mut bundle = Bundle::default();
        files.iter().for_each(|(path, text)| bundle.add(*path, text.as_bytes().to_vec()).expect("a file"));
        bundle
    }

    #[test]
    fn files_come_out_as_they_went_in_and_the_same_files_are_the_same_bytes() {
        let long = format!("{}/x.py", "deep/".repeat(40).trim_end_matches('/'));
        let (one, other) = (
            bundle(&[("main.py", "1"), ("lib/a.py", ""), (&long, "2")]),
            bundle(&[(&long, "2"), ("main.py", "1"), ("lib/a.py", "")]),
        );
        let packed = pack(MANIFEST, &one).expect("packs");
        assert_eq!(packed, pack(MANIFEST, &other).expect("packs"));
        assert_eq!(extract(&packed).expect("reads"), Some(one));
        let inspected = crate::inspect::inspect(&packed).expect("inspects");
        assert_eq!(inspected.skew, Vec::<String>::new());
        assert_eq!(inspected.manifest_text.as_deref(), Some(MANIFEST));
    }

    #[test]
    fn what_the_manifest_names_has_to_be_there() {
        let skew = |bytes: &[u8]| crate::inspect::inspect(bytes).expect("inspects").skew.join("\n");
        let packed = pack(MANIFEST, &bundle(&[("other.py", "")])).expect("packs");
        assert!(skew(&packed).contains("`main.py`, which is not among its files"), "{}", skew(&packed));
        let without = embed(EMPTY_COMPONENT, MANIFEST).expect("embeds");
        assert!(skew(&without).contains("has no files in it"), "{}", skew(&without));
    }

    #[test]
    fn paths_stay_inside_and_sizes_are_bounded() {
        for bad in ["a\nb.py", "a\u{1b}b.py", "", "/etc/passwd", "../x.py", "a/../b.py", "a//b.py", "./a.py", "a\\b.py"]
        {
            assert!(matches!(Bundle::default().add(bad, vec![]), Err(SourceError::InvalidPath(_))), "{bad}");
        }
        assert!(matches!(Bundle::default().add("a.bin", vec![0; MAX_BYTES + 1]), Err(SourceError::TooLarge(_))));
    }

    #[test]
    fn an_archive_says_each_name_once_and_in_utf8() {
        let archive = |names: &[&[u8]]| {
            let mut archive = tar::Builder::new(Vec::new());
            for name in names {
                let mut header = tar::Header::new_gnu();
                header.as_mut_bytes()[..name.len()].copy_from_slice(name);
                header.set_size(0);
                header.set_cksum();
                archive.append(&header, &b""[..]).expect("appends");
            }
            append(EMPTY_COMPONENT, SECTION, &archive.into_inner().expect("an archive"))
        };
        assert!(extract(&archive(&[b"a.py", b"b.py"])).expect("reads").is_some());
        assert_eq!(extract(&archive(&[b"a.py", b"a.py"])), Err(SourceError::Duplicate("a.py".to_owned())));
        assert!(matches!(extract(&archive(&[b"a\xff.py"])), Err(SourceError::InvalidPath(_))));
    }

    #[test]
    fn source_text_has_no_code_beside_it() {
        let packed = pack(MANIFEST, &bundle(&[("main.py", "")])).expect("packs");
        // An empty section of types.
        let with_types = [&packed[..], &[7, 1, 0]].concat();
        assert!(matches!(extract(&with_types), Err(SourceError::NotOnlySource(_))));
    }

    #[test]
    fn a_damaged_archive_is_an_error() {
        for bad in [&b"not an archive at all"[..], &[1; 2_000]] {
            let component = append(EMPTY_COMPONENT, SECTION, bad);
            assert!(matches!(extract(&component), Err(SourceError::Damaged(_))), "{bad:?}");
        }
        let twice = append(&append(EMPTY_COMPONENT, SECTION, b""), SECTION, b"");
        assert_eq!(extract(&twice), Err(SourceError::Twice));
    }
}
