//! `noetl plugin show`: all about one plugin, and the parts of that answer other verbs read.

use clap::Args;
use noetl_contract::manifest::HttpPolicy;
use noetl_contract::{CapabilitySet, PluginPath, Version};
use serde_json::{Value, json};

use crate::args::Context;
use crate::failure::Outcome;
use crate::output::{Paint, cell, short_digest, size, table, time_cell};

#[derive(Debug, Args)]
pub struct Show {
    path: PluginPath,
}

impl Show {
    pub async fn run(self, context: &Context) -> Outcome {
        let client = context.client()?;
        let mut shown = client.get(&super::at(&self.path), &[]).await?;
        let history = client.get(&super::verb(&self.path, "history"), &[]).await?;
        shown["history"] = history["history"].clone();
        context.output.result(&shown, |paint| text(&shown, paint));
        Ok(())
    }
}

/// The version itself inside a row of a list; beside it stand the channels that serve it.
pub fn entry(row: &Value) -> &Value {
    &row["entry"]
}

/// What a version asks for.
pub fn capability_names(row: &Value) -> Vec<String> {
    let names = entry(row)["manifest"]["capabilities"].as_array();
    names.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// Every version there is.
pub fn versions(shown: &Value) -> Vec<Version> {
    let rows = shown["versions"].as_array();
    rows.into_iter().flatten().filter_map(|row| entry(row)["version"].as_str()?.parse().ok()).collect()
}

/// What the version that a channel serves may use; none when the channel serves nothing.
pub fn capabilities_on(shown: &Value, channel: &str) -> Option<CapabilitySet> {
    let served = shown["channels"][channel].as_str()?;
    let row = shown["versions"].as_array()?.iter().find(|row| entry(row)["version"] == served)?;
    Some(capability_names(row).iter().filter_map(|name| name.parse::<noetl_contract::Capability>().ok()).collect())
}

/// Which hosts the version that a channel serves may reach.
pub fn hosts_on(shown: &Value, channel: &str) -> HttpPolicy {
    let served = shown["channels"][channel].as_str();
    let rows = shown["versions"].as_array().into_iter().flatten();
    let row = rows.into_iter().find(|row| served.is_some() && entry(row)["version"].as_str() == served);
    row.and_then(|row| serde_json::from_value(entry(row)["manifest"]["http"].clone()).ok()).unwrap_or_default()
}

fn text(shown: &Value, paint: Paint) -> String {
    let mut parts = vec![paint.bold(cell(&shown["path"]))];
    let rows = shown["versions"].as_array().cloned().unwrap_or_default();
    if let Some(description) = rows.last().and_then(|row| entry(row)["manifest"]["description"].as_str()) {
        parts[0].push_str(&format!("\n{}", crate::output::printable(description)));
    }
    parts.push(table(
        ["version", "channels", "ring", "capabilities", "size", "digest", "pushed", "by", "reason"],
        rows.iter().rev().map(version_cells),
    ));
    let origins: Vec<[String; 5]> = rows.iter().rev().filter_map(origin_cells).collect();
    if !origins.is_empty() {
        parts.push(table(["version", "signed by", "provenance", "from", "with"], origins));
    }
    let pairs = |value: &Value| -> Vec<[String; 2]> {
        value.as_object().into_iter().flatten().map(|(name, value)| [name.clone(), cell(value)]).collect()
    };
    for (header, rows) in [
        (["channel", "serves"], pairs(&shown["channels"])),
        (["pinned tenant", "version"], pairs(&shown["pins"])),
        (["bound tenant", "served by"], pairs(&shown["bindings"])),
        (["serves tenant", "in place of"], pairs(&shown["serves"])),
        (["limit", "per call"], pairs(&limits(shown, &rows))),
        (["not served", "because"], pairs(&shown["unsigned"])),
    ] {
        if !rows.is_empty() {
            parts.push(table(header, rows));
        }
    }
    if shown["quarantine"].is_object() {
        parts.push(paint.bad(format!("in quarantine: {}", cell(&shown["quarantine"]["reason"]))));
    }
    let history = shown["history"].as_array().cloned().unwrap_or_default();
    if !history.is_empty() {
        parts.push(table(
            ["when", "who", "what", "why"],
            history.iter().rev().map(|change| {
                [time_cell(&change["time_ms"]), cell(&change["actor"]), cell(&change["what"]), cell(&change["reason"])]
            }),
        ));
    }
    parts.join("\n\n")
}

fn version_cells(row: &Value) -> [String; 9] {
    let version = entry(row);
    let pushed = match version["pushed_at_ms"].as_u64() {
        Some(0) | None => "built in".to_owned(),
        Some(_) => time_cell(&version["pushed_at_ms"]),
    };
    [
        cell(&version["version"]),
        cell(&row["channels"]),
        cell(&version["ring"]),
        cell(&json!(capability_names(row))),
        version["size"].as_u64().map_or_else(|| cell(&version["size"]), size),
        short_digest(&cell(&version["digest"])),
        pushed,
        cell(&version["pushed_by"]),
        cell(&version["reason"]),
    ]
}

/// Who has signed a version and how it was made, where anything is known.
fn origin_cells(row: &Value) -> Option<[String; 5]> {
    let version = entry(row);
    let (signers, made) = (&version["signers"], &version["provenance"]);
    let is_signed = signers.as_array().is_some_and(|signers| !signers.is_empty());
    if !is_signed && made.is_null() {
        return None;
    }
    let source = &made["source"];
    let from = match source["commit"].as_str() {
        None => "-".to_owned(),
        Some(commit) => {
            let short: String = commit.chars().take(12).collect();
            let dirty = if source["dirty"] == Value::Bool(true) { " and changes" } else { "" };
            let repository = source["repository"].as_str().map_or_else(String::new, |place| format!(" of {place}"));
            format!("{short}{dirty}{repository}")
        }
    };
    let signed = if is_signed { cell(signers) } else { "nobody".to_owned() };
    let with = match (made["toolchain"].as_str(), made["tool"].as_str()) {
        (Some(toolchain), Some(tool)) => format!("{toolchain}; {tool}"),
        _ => "-".to_owned(),
    };
    Some([cell(&version["version"]), signed, claim(made), from, with])
}

/// Who is said to have built it, and whose word that is: whoever has signed the bytes need not stand by the account.
fn claim(made: &Value) -> String {
    let signed = made["signed_by"].as_array().is_some_and(|keys| !keys.is_empty());
    match (made.is_null(), signed) {
        (true, _) => "-".to_owned(),
        (_, true) => format!("{} (signed by {})", cell(&made["builder"]), cell(&made["signed_by"])),
        (_, false) => format!("{} (claimed by nobody)", cell(&made["builder"])),
    }
}

/// The limits of what `stable` serves, else of the newest version.
fn limits(shown: &Value, rows: &[Value]) -> Value {
    let served = &shown["channels"]["stable"];
    let row = rows.iter().find(|row| entry(row)["version"] == *served).or(rows.last());
    row.map_or(Value::Null, |row| entry(row)["manifest"]["limits"].clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown() -> Value {
        let version = |version: &str, channels: Value, capabilities: Value| {
            json!({ "entry": { "version": version, "manifest": { "capabilities": capabilities, "limits": { "cpu_ms": 7 } },
                               "pushed_at_ms": 0, "size": 5, "digest": "sha256:aa" },
                    "channels": channels })
        };
        json!({ "path": "acme/a", "channels": { "stable": "1.0.0", "dev": "1.1.0" }, "pins": { "acme": "1.0.0" },
                "versions": [version("1.0.0", json!(["stable"]), json!(["log"])),
                             version("1.1.0", json!(["dev"]), json!(["kv", "log"]))],
                "history": [{ "time_ms": 0, "actor": "ada", "what": "pushed 1.0.0", "reason": "first" }] })
    }

    #[test]
    fn the_capabilities_of_a_channel_are_those_of_the_version_it_serves() {
        assert_eq!(capabilities_on(&shown(), "stable").expect("serves").to_string(), "log");
        assert_eq!(capabilities_on(&shown(), "dev").expect("serves").to_string(), "log, kv");
        assert_eq!(capabilities_on(&shown(), "canary"), None);
        assert_eq!(versions(&shown()).len(), 2);
    }

    #[test]
    fn signers_and_origin_are_shown_where_they_are_known() {
        assert!(!text(&shown(), Paint::plain()).contains("SIGNED BY"));
        let mut shown = shown();
        shown["versions"][0]["entry"]["signers"] = json!(["ed25519:aa"]);
        shown["versions"][1]["entry"]["provenance"] = json!({
            "builder": "ada@laptop", "tool": "noetl 0.1.0", "toolchain": "rustc 1.95.0",
            "source": { "repository": "https://example.com/x.git", "commit": "0123456789abcdef", "dirty": true },
        });
        shown["unsigned"] = json!({ "1.1.0": "it is not signed" });
        let text = text(&shown, Paint::plain());
        for wanted in [
            "ed25519:aa",
            "nobody",
            "ada@laptop (claimed by nobody)",
            "0123456789ab and changes",
            "rustc 1.95.0",
            "NOT SERVED",
        ] {
            assert!(text.contains(wanted), "{wanted} is not in\n{text}");
        }
    }

    #[test]
    fn an_account_of_the_build_is_shown_with_whose_word_it_is() {
        let mut shown = shown();
        shown["versions"][0]["entry"]["signers"] = json!(["ed25519:aa", "ed25519:bb"]);
        shown["versions"][0]["entry"]["provenance"] = json!({ "builder": "ada", "signed_by": ["ed25519:bb"] });
        let text = text(&shown, Paint::plain());
        assert!(text.contains("ada (signed by ed25519:bb)"), "{text}");
    }

    #[test]
    fn the_page_has_versions_channels_pins_limits_and_history() {
        let text = text(&shown(), Paint::plain());
        for wanted in ["1.1.0", "stable", "PINNED TENANT", "cpu_ms", "pushed 1.0.0", "first", "ada"] {
            assert!(text.contains(wanted), "{wanted} is not in\n{text}");
        }
    }
}
