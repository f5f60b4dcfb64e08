//! A project of source text as the files of a plugin: which of a folder's files are the plugin, and nothing compiled.

use std::io;
use std::path::{Path, PathBuf};

use noetl_contract::source::{Bundle, MAX_BYTES, SourceError};

/// What is at the top of a project's folder and not in the plugin; deeper down the same names are a library's own. Names
/// that begin with a dot and `__pycache__` are left out wherever they are.
pub const LEFT_OUT: [&str; 8] =
    ["target", "cases", "tests", "node_modules", "plugin.toml", "README.md", "pyproject.toml", "jsconfig.json"];

const COMPILED: &str = "__pycache__";

/// Whether a file or folder of a project is not in the plugin, by its name and whether it lies at the top.
pub fn is_left_out(name: &str, at_top: bool) -> bool {
    name.starts_with('.') || name == COMPILED || (at_top && LEFT_OUT.contains(&name))
}

/// Why a folder or file cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    #[error("cannot read {}: {source}", .file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("{} has a name that is not UTF-8", .0.display())]
    Name(PathBuf),
    #[error(
        "{} is a {what}, and a plugin is made of plain files: put the file itself there, or give it a name that begins \
         with a dot to leave it out", .file.display()
    )]
    NotAFile { file: PathBuf, what: &'static str },
    #[error("{}: {source}; these are left out: {} at the top, `__pycache__`, and names that begin with a dot", .file.display(), LEFT_OUT.join(", "))]
    Refused { file: PathBuf, source: SourceError },
}

/// The files of a plugin that is one file, or a project's folder.
pub fn bundle(what: &Path) -> Result<Bundle, PackError> {
    let mut bundle = Bundle::default();
    if what.is_file() {
        add(&mut bundle, what, what.file_name().map(Path::new).unwrap_or(what))?;
        return Ok(bundle);
    }
    for file in files(what)? {
        add(&mut bundle, &file, file.strip_prefix(what).unwrap_or(&file))?;
    }
    Ok(bundle)
}

fn add(bundle: &mut Bundle, file: &Path, name: &Path) -> Result<(), PackError> {
    let name = name.to_str().ok_or_else(|| PackError::Name(file.to_owned()))?;
    let refused = |source| PackError::Refused { file: file.to_owned(), source };
    let size = std::fs::metadata(file).map_err(unreadable(file))?.len();
    // Before it is read: a folder may have anything in it.
    if size > MAX_BYTES as u64 {
        return Err(refused(SourceError::TooLarge(usize::try_from(size).unwrap_or(usize::MAX))));
    }
    let content = std::fs::read(file).map_err(unreadable(file))?;
    bundle.add(name, content).map_err(refused)
}

/// Every file of a project that belongs to the plugin.
fn files(folder: &Path) -> Result<Vec<PathBuf>, PackError> {
    let mut found = Vec::new();
    let top = folder;
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).map_err(unreadable(&folder))? {
            let entry = entry.map_err(unreadable(&folder))?;
            let name = entry.file_name();
            if is_left_out(&name.to_string_lossy(), folder == top) {
                continue;
            }
            let path = entry.path();
            // Of the entry itself: what a link leads to may be outside of the project.
            let kind = entry.file_type().map_err(unreadable(&path))?;
            match (kind.is_dir(), kind.is_file()) {
                (true, _) => open.push(path),
                (_, true) => found.push(path),
                _ if kind.is_symlink() => return Err(PackError::NotAFile { file: path, what: "link" }),
                _ => return Err(PackError::NotAFile { file: path, what: "pipe, socket or device" }),
            }
        }
    }
    Ok(found)
}

fn unreadable(file: &Path) -> impl FnOnce(io::Error) -> PackError {
    let file = file.to_owned();
    move |source| PackError::Read { file, source }
}
