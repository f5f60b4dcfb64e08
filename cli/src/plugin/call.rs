//! `noetl plugin call`: one call, its answer on stdout as the plugin gave it.
//!
//! A tool takes a JSON object (`--json-args`), a transform takes bytes (`--input`). With the global `--json` the answer
//! is wrapped in one object together with the version that gave it: `output` when the answer is JSON, otherwise
//! `output_base64`, because bytes that happen to look like text must come out as they went in.

use std::path::{Path, PathBuf};
use std::time::Instant;

use base64::Engine as _;
use clap::Args;
use noetl_contract::{Capability, PluginPath, Tenant, Version};
use noetl_dispatch::case::{self, Case};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde_json::{Value, json};

use crate::args::Context;
use crate::failure::{self, Exit, Failure, Outcome};
use crate::given;
use crate::output::printable;

#[derive(Debug, Args)]
pub struct Call {
    path: PluginPath,
    /// Bytes for the plugin: text as it is, `@FILE` for a file's content, `-` for stdin.
    #[arg(long, value_name = "TEXT|@FILE|-", conflicts_with = "json_args", allow_hyphen_values = true)]
    input: Option<String>,
    /// Arguments for a tool: one JSON object, `@FILE` or `-`.
    #[arg(long, value_name = "JSON|@FILE|-")]
    json_args: Option<String>,
    /// Call this version, whatever the channel says.
    #[arg(long)]
    version: Option<Version>,
    /// Call the version of this channel.
    #[arg(long, conflicts_with = "version")]
    channel: Option<String>,
    /// The tenant to call as [default: the token's own].
    #[arg(long)]
    tenant: Option<Tenant>,
    /// The only capabilities the call may use, separated by commas; empty for none.
    #[arg(long, value_name = "CAP,...", value_parser = capability_list)]
    capabilities: Option<String>,
    /// Write the answer to a file instead of stdout.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the call down as a case for `plugin test`: input, host calls with their answers, outcome; secrets masked.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Tell the version that answered and how long it took.
    #[arg(long)]
    time: bool,
}

impl Call {
    pub async fn run(self, context: &Context) -> Outcome {
        let client = context.client()?;
        let (body, media_type) = self.body()?;
        let verb = if self.record.is_some() { "record" } else { "call" };
        let version = self.version.as_ref().map(Version::to_string);
        let query = [
            ("version", version.as_deref()),
            ("channel", self.channel.as_deref()),
            ("tenant", self.tenant.as_ref().map(Tenant::as_str)),
            ("capabilities", self.capabilities.as_deref()),
        ];
        let request = client
            .request(Method::POST, &super::verb(&self.path, verb), &query)
            .header(CONTENT_TYPE, media_type)
            .body(body);
        let started = Instant::now();
        let response = client.send(request).await?;
        let about = About::of(response.headers());
        let answer = response.bytes().await.map_err(|error| client.broken(&error))?;
        let total_us = started.elapsed().as_micros();
        let answer = match &self.record {
            Some(file) => self.keep_case(file, &answer, context)?,
            None => answer.into(),
        };
        if self.time {
            context.output.say(about.line(total_us));
        }
        match &self.output {
            Some(file) => {
                super::fetch::write_whole(file, &answer)?;
                let value = about.json(json!({ "file": file, "size": answer.len() }));
                if context.output.json {
                    context.output.value(&value);
                }
            }
            None if context.output.json => context.output.value(&about.json(answer_json(&answer))),
            None => {
                context.output.raw(&answer);
                // Keeps the prompt on its own line without changing what a pipe gets.
                if std::io::IsTerminal::is_terminal(&std::io::stdout()) && !answer.ends_with(b"\n") {
                    context.output.raw(b"\n");
                }
            }
        }
        Ok(())
    }

    /// Writes the case and gives the answer that is in it.
    fn keep_case(&self, file: &Path, answer: &[u8], context: &Context) -> Outcome<Vec<u8>> {
        let case: Case = serde_json::from_slice(answer)
            .map_err(|error| Failure::failed(format!("the server's answer is not a case: {error}")))?;
        if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(failure::io("make", folder))?;
        }
        super::test::write(file, &case)?;
        context.output.say(format_args!("wrote {} ({} host calls)", file.display(), case.calls.len()));
        if let Some(what) = super::test::left_out(&case) {
            context.output.warn(format_args!("this case cannot be played: {what}"));
        }
        match case.outcome {
            case::Outcome::Bytes(bytes) => Ok(case::bytes_of(&bytes).unwrap_or_default()),
            case::Outcome::Output(output) | case::Outcome::OutputAndBody { output, .. } => {
                Ok(case::text_of(&output).into_bytes())
            }
            case::Outcome::Failure { code, message, .. } => Err(Failure::new(
                Exit::PluginFailure,
                format!("`{}` answered with a failure ({code}): {message}", self.path),
            )),
        }
    }

    fn body(&self) -> Outcome<(Vec<u8>, &'static str)> {
        if let Some(text) = &self.json_args {
            let bytes = given::read(text)?;
            let value: Value = serde_json::from_slice(&bytes)
                .map_err(|error| Failure::usage(format!("--json-args is not JSON: {error}")))?;
            if !value.is_object() {
                return Err(Failure::usage("--json-args must be one JSON object, such as '{\"name\": \"Ada\"}'"));
            }
            return Ok((bytes, "application/json"));
        }
        let bytes = self.input.as_deref().map(given::read).transpose()?;
        Ok((bytes.unwrap_or_default(), "application/octet-stream"))
    }
}

/// Checks names before they travel, so that a slip is a usage error.
pub fn capability_list(text: &str) -> Result<String, String> {
    let names: Result<Vec<_>, _> =
        text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::parse::<Capability>).collect();
    let names = names.map_err(|error| error.to_string())?;
    if names.is_empty() {
        // An empty parameter would be read as an absent one, which grants what the manifest asks for.
        return Ok("none".to_owned());
    }
    Ok(names.iter().map(|capability| capability.name()).collect::<Vec<_>>().join(","))
}

fn answer_json(answer: &[u8]) -> Value {
    match serde_json::from_slice::<Value>(answer) {
        Ok(output) => json!({ "output": output }),
        Err(_) => json!({ "output_base64": base64::engine::general_purpose::STANDARD.encode(answer) }),
    }
}

/// Who answered, from the answer's headers.
struct About {
    path: String,
    version: String,
    digest: String,
    resolved_by: String,
    duration_us: Option<u64>,
}

impl About {
    fn of(headers: &HeaderMap) -> Self {
        let text =
            |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(printable).unwrap_or_default();
        Self {
            path: text("noetl-plugin-path"),
            version: text("noetl-plugin-version"),
            digest: text("noetl-plugin-digest"),
            resolved_by: text("noetl-resolved-by"),
            duration_us: text("noetl-duration-us").parse().ok(),
        }
    }

    fn line(&self, total_us: u128) -> String {
        let inside = self.duration_us.map_or_else(|| "?".to_owned(), |us| us.to_string());
        format!(
            "{} {} ({}): {inside} µs in the plugin, {total_us} µs in all",
            self.path, self.version, self.resolved_by
        )
    }

    fn json(&self, answer: Value) -> Value {
        let mut value = json!({ "path": self.path, "version": self.version, "digest": self.digest,
                                "resolved_by": self.resolved_by, "duration_us": self.duration_us });
        if let (Value::Object(value), Value::Object(answer)) = (&mut value, answer) {
            value.extend(answer);
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_are_not_json_keep_their_bytes() {
        assert_eq!(answer_json(b"{\"a\":1}"), json!({ "output": { "a": 1 } }));
        assert_eq!(answer_json(b"\xff\x00"), json!({ "output_base64": "/wA=" }));
        assert_eq!(answer_json(b"plain"), json!({ "output_base64": "cGxhaW4=" }));
    }

    #[test]
    fn capability_names_are_checked_before_they_travel() {
        assert_eq!(capability_list("kv, log").expect("valid"), "kv,log");
        assert_eq!(capability_list("").expect("none"), "none");
        assert!(capability_list("kvv").expect_err("unknown").contains("kvv"));
    }
}
