//! `noetl plugin diff`: what differs between two plugins or two versions of one.
//!
//! A side is a local component, a project (which is built), `PATH@VERSION` or `PATH` (what its channel serves). All four
//! are brought to the same thing, a component with its bytes, so the comparison does not depend on where it came from.

use std::path::Path;

use clap::Args;
use noetl_contract::{PluginPath, Version};
use serde_json::{Value, json};

use super::changes::Changes;
use super::component::Component;
use crate::args::Context;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{Paint, cell, printable, size};

#[derive(Debug, Args)]
pub struct Diff {
    /// PATH, PATH@VERSION, a component file or a project's folder.
    a: String,
    /// The same; what it has and the first has not is shown as added.
    b: String,
}

impl Diff {
    pub async fn run(self, context: &Context) -> Outcome {
        let before = load(&self.a, context).await?;
        let after = load(&self.b, context).await?;
        let difference = Difference::between(&before, &after);
        context.output.result(&difference.json(&before, &after), |paint| difference.text(&before, &after, paint));
        Ok(())
    }
}

async fn load(side: &str, context: &Context) -> Outcome<Component> {
    let local = Path::new(side);
    if local.is_dir() {
        return super::build::build(local, None, None, &context.output);
    }
    if local.is_file() {
        return Component::read(local);
    }
    let (path, version) = match side.split_once('@') {
        Some((path, version)) => (path, Some(version)),
        None => (side, None),
    };
    let unknown = |why: String| {
        Failure::new(Exit::Usage, format!("`{side}` is neither a file nor a plugin: {why}"))
            .next("use PATH, PATH@VERSION, a component file or a project's folder")
    };
    let path = PluginPath::new(path).map_err(|error| unknown(error.to_string()))?;
    let version = version.map(str::parse::<Version>).transpose().map_err(|error| unknown(error.to_string()))?;
    let bytes = super::fetch::download(&context.client()?, &path, version.as_ref(), None).await?;
    Component::parse(side.to_owned(), bytes)
}

/// Everything that differs.
#[derive(Debug)]
struct Difference {
    /// Option of the manifest, before, after.
    manifest: Vec<(String, Value, Value)>,
    capabilities: Changes,
    imports: Changes,
    exports: Changes,
}

impl Difference {
    fn between(before: &Component, after: &Component) -> Self {
        Self {
            manifest: manifest_changes(before, after),
            capabilities: Changes::of_capabilities(before.manifest.capabilities, after.manifest.capabilities),
            imports: Changes::between(&before.imports, &after.imports),
            exports: Changes::between(&before.exports, &after.exports),
        }
    }

    fn json(&self, before: &Component, after: &Component) -> Value {
        let side = |component: &Component| {
            json!({ "name": component.name, "path": component.manifest.path, "version": component.manifest.version,
                    "digest": component.digest(), "size": component.bytes.len() })
        };
        let manifest: Vec<_> = self
            .manifest
            .iter()
            .map(|(option, before, after)| json!({ "option": option, "before": before, "after": after }))
            .collect();
        json!({
            "a": side(before), "b": side(after), "identical": before.bytes == after.bytes, "manifest": manifest,
            "capabilities": self.capabilities.json(), "imports": self.imports.json(), "exports": self.exports.json(),
        })
    }

    fn text(&self, before: &Component, after: &Component, paint: Paint) -> String {
        if before.bytes == after.bytes {
            return format!("identical: {}", before.digest());
        }
        let mut lines = vec![
            paint.bad(format!("--- {} {} ({})", before.name, before.manifest.version, before.digest().short())),
            paint.good(format!("+++ {} {} ({})", after.name, after.manifest.version, after.digest().short())),
        ];
        let (small, large) = (before.bytes.len() as u64, after.bytes.len() as u64);
        lines.push(format!("size: {} -> {} ({:+} bytes)", size(small), size(large), large as i64 - small as i64));
        if !self.manifest.is_empty() {
            lines.push(paint.bold("manifest"));
            for (option, before, after) in &self.manifest {
                lines.push(format!(
                    "  {option}: {} -> {}",
                    paint.bad(printable(&cell(before))),
                    paint.good(printable(&cell(after)))
                ));
            }
        }
        for (title, changes) in
            [("capabilities", &self.capabilities), ("imports", &self.imports), ("exports", &self.exports)]
        {
            if !changes.is_empty() {
                lines.push(paint.bold(title));
                lines.extend(changes.lines(paint));
            }
        }
        lines.join("\n")
    }
}

/// Options that differ, by dotted name. Capabilities have a part of their own.
fn manifest_changes(before: &Component, after: &Component) -> Vec<(String, Value, Value)> {
    let flat = |component: &Component| {
        let mut options = std::collections::BTreeMap::new();
        let value = serde_json::to_value(&component.manifest).expect("a manifest is plain data");
        flatten("", &value, &mut options);
        options.remove("capabilities");
        options
    };
    let (before, after) = (flat(before), flat(after));
    let mut names: Vec<_> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let value =
        |side: &std::collections::BTreeMap<String, Value>, name: &str| side.get(name).cloned().unwrap_or(Value::Null);
    names
        .into_iter()
        .map(|name| (name.clone(), value(&before, name), value(&after, name)))
        .filter(|(_, before, after)| before != after)
        .collect()
}

fn flatten(prefix: &str, value: &Value, into: &mut std::collections::BTreeMap<String, Value>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                flatten(&name, value, into);
            }
        }
        value => {
            into.insert(prefix.to_owned(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::component::tests::empty;
    use super::*;

    fn manifest(version: &str, rest: &str) -> String {
        format!("path = \"acme/a\"\nversion = \"{version}\"\nworld = \"transform\"\n{rest}")
    }

    #[test]
    fn what_differs_is_told_by_option_and_by_capability() {
        let before = empty(&manifest("1.0.0", "capabilities = [\"log\"]\n"));
        let mut after = empty(&manifest("1.1.0", "capabilities = [\"kv\", \"log\"]\n[limits]\ncpu_ms = 5\n"));
        after.imports = vec!["noetl:kv/kv@0.1.0".to_owned()];
        let difference = Difference::between(&before, &after);
        let text = difference.text(&before, &after, Paint::plain());
        for wanted in ["version: 1.0.0 -> 1.1.0", "limits.cpu_ms: 1000 -> 5", "  + kv", "  + noetl:kv/kv@0.1.0"] {
            assert!(text.contains(wanted), "{wanted} is not in\n{text}");
        }
        assert!(!text.contains("  - "), "nothing was removed:\n{text}");
        let json = difference.json(&before, &after);
        assert_eq!(json["capabilities"]["added"], json!(["kv"]));
        assert_eq!(json["identical"], false);
    }

    #[test]
    fn the_same_bytes_are_identical() {
        let side = empty(&manifest("1.0.0", ""));
        let difference = Difference::between(&side, &side);
        assert!(difference.text(&side, &side, Paint::plain()).starts_with("identical: sha256:"));
        assert!(difference.manifest.is_empty() && difference.capabilities.is_empty());
    }
}
