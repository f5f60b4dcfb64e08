//! `noetl plugin new`: a project that builds, tests and pushes as it is.
//!
//! The templates, the SDK and the contract are inside the binary and are copied into the project (`.noetl/`), so that a
//! project needs no network for them and keeps building as it did when the command is upgraded. Nothing is ever
//! overwritten: the folder must be new or empty.

use std::path::{Path, PathBuf};

use clap::Args;
use include_dir::{Dir, include_dir};
use noetl_contract::{PluginPath, packages};
use serde_json::json;

use crate::args::Context;
use crate::failure::{self, Exit, Failure, Outcome};

static TEMPLATES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../sdk/templates");
static RUST: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../sdk/rust");
static PYTHON: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../sdk/python/noetl");
static JS_TYPES: &str = include_str!("../../../sdk/js/noetl.d.ts");

/// Where the SDK and the contract go, below the project.
const VENDORED: &str = ".noetl";

#[derive(Debug, Args)]
pub struct New {
    /// The folder to make; it must not have anything in it.
    folder: PathBuf,
    /// Where the plugin will live in the catalog, such as `acme/orders/enrich`.
    #[arg(long)]
    path: PluginPath,
    /// `tool`: JSON options in, JSON out, acts on the outside. `transform`: bytes in, bytes out.
    #[arg(long, value_parser = ["tool", "transform"], default_value = "tool")]
    world: String,
    /// What it is written in: Rust is compiled, the others are run by the server's interpreters.
    #[arg(long, value_parser = ["rust", "python", "js"], default_value = "rust")]
    lang: String,
    /// Name of the crate [default: the last segment of the path].
    #[arg(long)]
    name: Option<String>,
}

impl New {
    pub fn run(self, context: &Context) -> Outcome {
        let name = match self.name {
            Some(name) => name,
            None => self.path.as_str().rsplit('/').next().unwrap_or("plugin").to_owned(),
        };
        if self.lang == "rust" {
            check_name(&name)?;
        }
        check_free(&self.folder)?;
        let template = TEMPLATES
            .get_dir(format!("{}-{}", self.world, self.lang))
            .ok_or_else(|| Failure::failed(format!("this binary has no template for `{}`", self.world)))?;
        let values = [("{{name}}", name.as_str()), ("{{path}}", self.path.as_str())];
        copy(template, template.path(), &self.folder, &values)?;
        vendor(&self.lang, &self.folder.join(VENDORED))?;
        let folder = self.folder.display().to_string();
        let value =
            json!({ "folder": folder, "path": self.path, "world": self.world, "lang": self.lang, "name": name });
        context.output.result(&value, |paint| {
            let option = if self.world == "tool" { "--json-args" } else { "--input" };
            let call = format!("noetl plugin call {} {option} '{{\"name\": \"Ada\"}}'", self.path);
            let test = if self.lang == "rust" { "cargo test" } else { "noetl plugin test ." };
            format!(
                "{} is ready. Next:\n  cd {folder}\n  {test}\n  noetl plugin push .\n  {call}\n  noetl plugin watch .",
                paint.bold(&folder)
            )
        });
        Ok(())
    }
}

/// What a project needs of the SDK: all of it to compile, its types to be edited.
fn vendor(lang: &str, place: &Path) -> Outcome {
    match lang {
        "python" => copy(&PYTHON, Path::new(""), &place.join("python/noetl"), &[]),
        "js" => write(&place.join("js/noetl.d.ts"), JS_TYPES.as_bytes()),
        _ => {
            copy(&RUST, Path::new(""), &place.join("sdk/rust"), &[])?;
            let contract = place.join("wit");
            packages::SOURCES.iter().try_for_each(|source| write(&contract.join(source.file), source.text.as_bytes()))
        }
    }
}

/// Names that mean something else to the compiler or are crates the project itself uses.
const TAKEN: &[&str] = &[
    "alloc",
    "as",
    "async",
    "await",
    "break",
    "const",
    "continue",
    "core",
    "crate",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "match",
    "mod",
    "move",
    "mut",
    "noetl-sdk",
    "noetl_sdk",
    "proc_macro",
    "pub",
    "ref",
    "return",
    "self",
    "serde",
    "serde_json",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "type",
    "unsafe",
    "use",
    "where",
    "while",
];

/// A name that is a crate and, with `_` for `-`, a Rust identifier.
fn check_name(name: &str) -> Outcome {
    let starts = name.starts_with(|first: char| first.is_ascii_lowercase());
    let rest = name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'));
    if starts && rest && name.len() <= 64 && !TAKEN.contains(&name) {
        return Ok(());
    }
    Err(Failure::usage(format!("`{name}` cannot be the name of a crate"))
        .next("use a-z, 0-9, `-` and `_`, starting with a letter: --name greeter"))
}

fn check_free(folder: &Path) -> Outcome {
    match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failure::io("use", folder)(error)),
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(Failure::new(Exit::Conflict, format!("{} is not empty", folder.display()))
                .next("name a folder that does not exist yet")),
        },
    }
}

/// Copies a folder of the binary, with the placeholders of `values` filled in.
fn copy(from: &Dir<'_>, base: &Path, to: &Path, values: &[(&str, &str)]) -> Outcome {
    for file in from.files() {
        let place = file.path().strip_prefix(base).unwrap_or(file.path());
        match file.contents_utf8().filter(|_| !values.is_empty()) {
            Some(text) => {
                let text = values.iter().fold(text.to_owned(), |text, (mark, value)| text.replace(mark, value));
                write(&to.join(place), text.as_bytes())?;
            }
            None => write(&to.join(place), file.contents())?,
        }
    }
    // What Python leaves beside sources that it ran may have been in the folder when the binary was built.
    let mut own = from.dirs().filter(|folder| !folder.path().ends_with("__pycache__"));
    own.try_for_each(|folder| copy(folder, base, to, values))
}

fn write(file: &Path, bytes: &[u8]) -> Outcome {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(failure::io("make", folder))?;
    }
    std::fs::write(file, bytes).map_err(failure::io("write", file))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command};

    fn new(folder: &Path, world: &str, lang: &str) -> Outcome {
        let folder = folder.to_str().expect("text");
        let line = ["noetl", "plugin", "new", folder, "--path", "acme/my-greeter", "--world", world, "--lang", lang];
        let cli = Cli::parse_from(line);
        let context = Context::new(cli.global)?;
        match cli.command {
            Command::Plugin(super::super::Command::New(new)) => new.run(&context),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_project_of_each_world_is_whole_and_has_no_placeholder_left() {
        for world in ["tool", "transform"] {
            let place = tempfile::tempdir().expect("folder");
            let folder = place.path().join("project");
            new(&folder, world, "rust").expect("writes");
            for file in ["Cargo.toml", "plugin.toml", "src/lib.rs", "tests/plugin.rs", "README.md", ".gitignore"] {
                let text = std::fs::read_to_string(folder.join(file)).expect(file);
                assert!(!text.contains("{{path}}") && !text.contains("{{name}}"), "{file}");
            }
            let (manifest, _) = super::super::component::project_manifest(&folder, None).expect("a valid manifest");
            assert_eq!((manifest.path.as_str(), manifest.world.name()), ("acme/my-greeter", world));
            for vendored in ["sdk/rust/Cargo.toml", "sdk/rust/src/lib.rs", "wit/worlds/0.1.0/worlds.wit"] {
                assert!(folder.join(VENDORED).join(vendored).is_file(), "{vendored}");
            }
            assert_eq!(new(&folder, world, "rust").expect_err("not empty").exit, Exit::Conflict);
        }
    }

    #[test]
    fn a_project_of_source_text_packs_as_it_is() {
        for (world, lang) in [("tool", "python"), ("transform", "python"), ("tool", "js"), ("transform", "js")] {
            let place = tempfile::tempdir().expect("folder");
            let folder = place.path().join("project");
            new(&folder, world, lang).expect("writes");
            let (manifest, text) = super::super::component::project_manifest(&folder, None).expect("a valid manifest");
            assert_eq!((manifest.path.as_str(), manifest.world.name()), ("acme/my-greeter", world));
            let packed = super::super::pack::pack(&folder, &text).expect("packs");
            let bundle = noetl_contract::source::extract(&packed.bytes).expect("reads").expect("a bundle");
            assert_eq!(bundle.files().count(), 1, "nothing but the entry: {bundle:?}");
            let types = if lang == "python" { "python/noetl/kv.py" } else { "js/noetl.d.ts" };
            assert!(folder.join(VENDORED).join(types).is_file());
        }
    }

    #[test]
    fn names_that_cannot_be_a_crate_are_refused() {
        for bad in ["", "1st", "Big", "a b", "type", "std", "é"] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
        assert!(check_name("my-greeter_2").is_ok());
    }
}
