//! Files of playbooks, from the files and folders that were named.
//!
//! A file that is named is taken as it is. Of a folder, those below it count that end in `.yaml` or `.yml` and say
//! `kind: Playbook` at the beginning of a line: a folder of playbooks has other YAML in it too. Hidden folders are not
//! looked into.

use std::path::{Path, PathBuf};

use crate::failure::{self, Exit, Failure, Outcome};

/// A file and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub file: PathBuf,
    pub text: String,
}

impl Source {
    pub fn read(file: &Path) -> Outcome<Self> {
        let bytes = std::fs::read(file).map_err(failure::io("read", file))?;
        let text = String::from_utf8(bytes).map_err(|_| {
            Failure::failed(format!("{} is not text", file.display())).next("a playbook is YAML in UTF-8")
        })?;
        Ok(Self { file: file.to_owned(), text })
    }

    pub fn name(&self) -> String {
        self.file.display().to_string()
    }
}

/// Everything that was named, folders in the order of their files' names.
pub fn collect(named: &[PathBuf]) -> Outcome<Vec<Source>> {
    let mut sources: Vec<Source> = Vec::new();
    for path in named {
        if path.is_dir() {
            let found = below(path)?;
            if found.is_empty() {
                let message = format!("there is no playbook in {}", path.display());
                return Err(Failure::new(Exit::NotFound, message)
                    .next("a playbook is a .yaml file with the line `kind: Playbook`"));
            }
            sources.extend(found);
        } else {
            sources.push(Source::read(path)?);
        }
    }
    Ok(sources)
}

/// Playbooks of a folder and the folders in it.
fn below(folder: &Path) -> Outcome<Vec<Source>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        found.extend(playbooks_in(&folder)?);
        for entry in entries(&folder)? {
            let hidden = entry.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
            // A link could lead back to where it came from.
            if entry.is_dir() && !entry.is_symlink() && !hidden {
                open.push(entry);
            }
        }
    }
    found.sort_by(|left, right| left.file.cmp(&right.file));
    Ok(found)
}

/// Playbooks of one folder; files that cannot be read as text are none.
pub fn playbooks_in(folder: &Path) -> Outcome<Vec<Source>> {
    let mut files = entries(folder)?;
    files.retain(|file| {
        let extension = file.extension().and_then(|extension| extension.to_str());
        matches!(extension, Some("yaml" | "yml")) && file.is_file()
    });
    files.sort();
    let readable = files.iter().filter_map(|file| Source::read(file).ok());
    Ok(readable.filter(|source| is_playbook(&source.text)).collect())
}

fn entries(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(failure::io("read", folder))?;
    entries.map(|entry| Ok(entry.map_err(failure::io("read", folder))?.path())).collect()
}

fn is_playbook(text: &str) -> bool {
    text.lines().any(|line| {
        let value = line.strip_prefix("kind:").map(|rest| rest.split('#').next().unwrap_or(rest).trim());
        value.is_some_and(|value| value.trim_matches(['"', '\'']) == "Playbook")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_folder_only_playbooks_count_and_what_is_named_counts_always() {
        let place = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let file = place.path().join(name);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(&file, text).expect("write");
            file
        };
        let b = write("b.yaml", "kind: Playbook\n");
        let a = write("deep/a.yml", "apiVersion: x\nkind: \"Playbook\"  # ours\n");
        write("values.yaml", "kind: Deployment\n");
        write("nested.yaml", "spec:\n  kind: Playbook\n");
        write("notes.txt", "kind: Playbook\n");
        write(".git/c.yaml", "kind: Playbook\n");
        let named = write("other.yaml", "nothing\n");
        let files = |named: &[PathBuf]| -> Vec<PathBuf> {
            collect(named).expect("readable").into_iter().map(|source| source.file).collect()
        };
        assert_eq!(files(&[place.path().to_owned()]), [b, a]);
        assert_eq!(files(std::slice::from_ref(&named)), [named]);
        assert_eq!(collect(&[place.path().join("none")]).expect_err("missing").exit, Exit::NotFound);
        assert_eq!(collect(&[place.path().join(".git/..").join("deep")]).expect("one").len(), 1);
    }
}
