//! Credentials, their uses and their key, for people.

use serde_json::Value;

use crate::output::{cell, printable, table, time_cell};

fn rows<'a>(answer: &'a Value, name: &str) -> &'a [Value] {
    answer[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

pub fn list(answer: &Value) -> String {
    let header = ["tenant", "name", "type", "hosts", "tags", "revision", "changed", "by"];
    table(
        header,
        rows(answer, "credentials").iter().map(|row| {
            [
                cell(&row["tenant"]),
                cell(&row["name"]),
                cell(&row["type"]),
                cell(&row["hosts"]),
                cell(&row["tags"]),
                cell(&row["revision"]),
                time_cell(&row["changed_at_ms"]),
                cell(&row["changed_by"]),
            ]
        }),
    )
}

pub fn one(answer: &Value) -> String {
    let mut lines: Vec<(String, String)> = ["name", "tenant", "type", "description", "hosts", "tags", "revision"]
        .map(|name| (name.to_owned(), cell(&answer[name])))
        .to_vec();
    lines.push((
        "changed".to_owned(),
        format!("{} by {}", time_cell(&answer["changed_at_ms"]), cell(&answer["changed_by"])),
    ));
    if let Some(data) = answer["data"].as_object() {
        lines.extend(data.iter().map(|(name, value)| (format!("data.{name}"), cell(value))));
    }
    let lines = lines.into_iter().map(|(name, value)| format!("{name:<18} {}", printable(&value)));
    lines.collect::<Vec<_>>().join("\n")
}

pub fn audit(answer: &Value) -> String {
    table(
        ["time", "event", "by", "call", "target", "revision"],
        rows(answer, "uses").iter().map(|row| {
            [
                time_cell(&row["at_ms"]),
                cell(&row["event"]),
                cell(&row["by"]),
                cell(&row["call"]),
                cell(&row["target"]),
                cell(&row["revision"]),
            ]
        }),
    )
}

pub fn rotated(answer: &Value) -> String {
    let mut text = format!("{} credentials are under the key {} now", answer["rewrapped"], cell(&answer["kid"]));
    if answer["retired"].as_array().is_some_and(|retired| !retired.is_empty()) {
        text.push_str(&format!("; nothing needs {} any more", cell(&answer["retired"])));
    }
    if answer["resumed"] == true {
        text.push_str("\nthis was the rest of a rotation that had broken off; run it again for a new key");
    }
    text
}

pub fn status(answer: &Value) -> String {
    let mut text = format!(
        "{} credentials, sealed with the key {} (from the {})",
        answer["records"],
        cell(&answer["kid"]),
        cell(&answer["source"])
    );
    for key in rows(answer, "keys") {
        text.push_str(&format!("\n  {}  {} credentials", cell(&key["kid"]), key["records"]));
    }
    text
}
