//! `noetl plugin logs`: what a plugin logged, and with `-f` what it logs from now on.
//!
//! A stream that ends (the server stopped) ends the command with a failure, so that a script notices.

use clap::Args;
use futures::StreamExt as _;
use noetl_contract::{PluginPath, Tenant, Version};
use reqwest::Method;
use serde_json::Value;

use crate::args::Context;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{Output, Paint, cell, printable, time_cell};
use crate::sse::Events;

#[derive(Debug, Args)]
pub struct Logs {
    path: PluginPath,
    /// Go on with new lines until interrupted.
    #[arg(short, long)]
    follow: bool,
    /// Least severe level to show.
    #[arg(long, value_parser = ["trace", "debug", "info", "warn", "error"])]
    level: Option<String>,
    /// Most lines to show.
    #[arg(long, default_value_t = 100)]
    limit: u32,
    /// Lines of this version only.
    #[arg(long)]
    version: Option<Version>,
    /// Lines of this tenant's calls only [default: the token's own, or all].
    #[arg(long)]
    tenant: Option<Tenant>,
}

impl Logs {
    pub async fn run(self, context: &Context) -> Outcome {
        let client = context.client()?;
        let (limit, version) = (self.limit.to_string(), self.version.as_ref().map(Version::to_string));
        let query = [
            ("limit", Some(limit.as_str())),
            ("level", self.level.as_deref()),
            ("version", version.as_deref()),
            ("tenant", self.tenant.as_ref().map(Tenant::as_str)),
            ("follow", self.follow.then_some("true")),
        ];
        let path = super::verb(&self.path, "logs");
        if !self.follow {
            let answer = client.get(&path, &query).await?;
            let lines = answer["lines"].as_array().cloned().unwrap_or_default();
            context
                .output
                .result(&answer, |paint| lines.iter().map(|line| text(line, paint)).collect::<Vec<_>>().join("\n"));
            return Ok(());
        }
        let response = client.send(client.request(Method::GET, &path, &query)).await?;
        let mut events = Events::default();
        let mut body = response.bytes_stream();
        while let Some(chunk) = body.next().await {
            for event in events.feed(&chunk.map_err(|error| client.broken(&error))?) {
                show(&event.data, &context.output);
            }
        }
        Err(Failure::new(Exit::Unreachable, "the server ended the stream of log lines").next("run the command again"))
    }
}

fn show(event: &str, output: &Output) {
    // An event that is not JSON is a remark of the server, such as that lines were left out.
    let Ok(line) = serde_json::from_str::<Value>(event) else {
        return output.say(printable(event));
    };
    if output.json { output.line(&line) } else { output.print(text(&line, output.stdout_paint())) }
}

/// One line for people: time, level, version, message, fields.
fn text(line: &Value, paint: Paint) -> String {
    let level = cell(&line["level"]);
    let level = match level.as_str() {
        "error" => paint.bad(format_args!("{level:<5}")),
        "warn" => paint.warn(format_args!("{level:<5}")),
        _ => paint.dim(format_args!("{level:<5}")),
    };
    let mut text = format!(
        "{} {level} {} {}",
        paint.dim(time_cell(&line["time_ms"])),
        paint.dim(printable(&cell(&line["version"]))),
        printable(&cell(&line["message"]))
    );
    for pair in line["fields"].as_array().into_iter().flatten() {
        let (name, value) = (printable(&cell(&pair[0])), printable(&cell(&pair[1])));
        text.push_str(&format!(" {}{value}", paint.dim(format_args!("{name}="))));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_shows_its_fields_and_no_escapes() {
        let line = json!({ "time_ms": 0, "level": "warn", "version": "1.0.0", "message": "a\u{1b}[0mb",
                           "fields": [["city", "Oslo"]] });
        assert_eq!(text(&line, Paint::plain()), "1970-01-01 00:00:00Z warn  1.0.0 a[0mb city=Oslo");
    }
}
