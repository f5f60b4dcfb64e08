//! A project of source text as the files of a plugin: which of a folder's files are the plugin, and nothing compiled.

use std::io;
use std::path::{Path, PathBuf};

use noetl_contract::source::{Bundle, SourceError};

/// What is in a project's folder and not in the plugin. Names that begin with a dot are left out too.
pub const LEFT_OUT: [&str; 9] = [
    "target",
    "cases",
    "tests",
    "node_modules",
    "__pycache__",
    "plugin.toml",
    "README.md",
    "pyproject.toml",
    "jsconfig.json",
];

/// Why a folder or file cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    #[error("cannot read {}: {source}", .file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("{} has a name that is not UTF-8", .0.display())]
    Name(PathBuf),
    #[error("{}: {source}; these are left out: {}, and names that begin with a dot", .file.display(), LEFT_OUT.join(", "))]
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
    let content = std::fs::read(file).map_err(unreadable(file))?;
    bundle.add(name, content).map_err(|source| PackError::Refused { file: file.to_owned(), source })
}

/// Every file of a project that belongs to the plugin.
fn files(folder: &Path) -> Result<Vec<PathBuf>, PackError> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).map_err(unreadable(&folder))? {
            let entry = entry.map_err(unreadable(&folder))?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') || LEFT_OUT.contains(&name.as_ref()) {
                continue;
            }
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push(path);
            }
        }
    }
    Ok(found)
}

fn unreadable(file: &Path) -> impl FnOnce(io::Error) -> PackError {
    let file = file.to_owned();
    move |source| PackError::Read { file, source }
}
