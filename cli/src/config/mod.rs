//! `noetl config`: what can be set, what is set, and what is wrong with a file.

pub mod docs;
pub mod load;
pub mod suggest;
pub mod table;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::args::{Context, SettingFlag};
use crate::failure::{Exit, Failure, Outcome};
use crate::output::table as print_table;
use load::{Problem, Settings, Sources};
use table::Value;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print the documentation of every option as markdown.
    Docs,
    /// Show each option's effective value and where it came from.
    Show(File),
    /// Print everything that is wrong with a configuration file.
    Check { file: PathBuf },
}

#[derive(Debug, Args)]
pub struct File {
    /// The configuration file.
    #[arg(long, value_name = "FILE", env = "NOETL_CONFIG")]
    pub config: Option<PathBuf>,
}

pub fn run(command: Command, context: &Context) -> Outcome {
    let output = context.output;
    match command {
        Command::Docs if output.json => {
            let rows = table::TABLE.iter().map(|row| {
                json!({ "key": row.key, "value": row.kind.describe(), "default": json_of(&row.default_value()),
                        "env": row.env(), "since": row.since, "help": row.help })
            });
            output.value(&rows.collect());
        }
        Command::Docs => output.raw(docs::markdown().as_bytes()),
        Command::Show(file) => show(&file, context)?,
        Command::Check { file } => {
            let text = load::read_text(&file)?;
            let name = file.display().to_string();
            match Settings::load(&Sources { file: Some((&name, &text)), ..Sources::default() }) {
                Ok(_) => output.result(&json!({ "file": name, "problems": [] }), |_| format!("{name} is right")),
                Err(problems) => return Err(refuse(&problems)),
            }
        }
    }
    Ok(())
}

fn show(file: &File, context: &Context) -> Outcome {
    let settings = load_all(file, context.setting_flags())?;
    let rows: Vec<_> = settings.iter().collect();
    let value = rows
        .iter()
        .map(|(row, setting)| {
            json!({ "key": row.key, "value": json_of(&setting.value), "from": setting.origin.to_string() })
        })
        .collect();
    context.output.result(&value, |_| {
        print_table(
            ["option", "value", "from"],
            rows.iter()
                .map(|(row, setting)| [row.key.to_owned(), setting.value.to_string(), setting.origin.to_string()]),
        )
    });
    Ok(())
}

/// File, environment and flags together, or a failure that names every problem.
pub fn load_all(file: &File, flags: Vec<SettingFlag>) -> Outcome<Settings> {
    let text = match &file.config {
        Some(path) => Some((path.display().to_string(), load::read_text(path)?)),
        None => None,
    };
    let sources = Sources {
        file: text.as_ref().map(|(name, text)| (name.as_str(), text.as_str())),
        env: load::process_env(),
        flags,
    };
    Settings::load(&sources).map_err(|problems| refuse(&problems))
}

fn refuse(problems: &[Problem]) -> Failure {
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    let message = match lines.as_slice() {
        [one] => format!("the configuration is wrong: {one}"),
        many => format!("the configuration is wrong in {} places:\n  {}", many.len(), many.join("\n  ")),
    };
    let mut failure = Failure::new(Exit::Usage, message).next("`noetl config docs` describes every option");
    failure.problem = Some(Box::new(json!({
        "code": "bad_configuration",
        "problems": problems
            .iter()
            .map(|problem| json!({ "file": problem.file, "line": problem.line, "column": problem.column,
                                   "message": problem.message }))
            .collect::<Vec<_>>(),
    })));
    failure
}

fn json_of(value: &Value) -> serde_json::Value {
    match value {
        Value::Text(text) => json!(text),
        Value::Number(number) => json!(number),
        Value::Flag(flag) => json!(flag),
        Value::List(list) => json!(list),
        Value::Secret(_) => json!(value.to_string()),
    }
}
