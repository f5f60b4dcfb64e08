//! Where rows come from: the answer of a server, or of a query.
//!
//! Either is a document of JSON in the tool's memory, so it is bounded; what is larger has to come in parts.

use noetl_sdk::Failure;
use noetl_sdk::sql::{Rows, Script};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sql_common::database;

use crate::options::TOOL;
use crate::rows;

/// What a document may have; the host gives no more of a query as JSON.
const MOST_BYTES: u32 = 16 << 20;

pub enum Source {
    Http { plan: http_common::Plan, path: Option<String> },
    Sql { kind: &'static str, database: Script, plan: sql_common::Plan },
}

/// What came of it.
pub struct Found {
    document: String,
    path: Option<String>,
    /// Whether the names of fields are names of columns already, as PostgreSQL has them.
    pub exact: bool,
}

impl Source {
    pub fn read(kind: &str, options: Map<String, Value>) -> Result<Self, Failure> {
        Self::of(kind, options).map_err(|failure| failure.context("`source`"))
    }

    fn of(kind: &str, mut options: Map<String, Value>) -> Result<Self, Failure> {
        match kind {
            "http" | "https" => {
                let path = match options.remove("data_path") {
                    None | Some(Value::Null) => None,
                    Some(Value::String(path)) => Some(path).filter(|path| !path.trim().is_empty()),
                    Some(_) => return Err(Failure::invalid_input("`source.data_path` is text such as `data.items`")),
                };
                Ok(Self::Http { plan: http_common::Options::of(TOOL, options)?.plan(false)?, path })
            }
            "postgres" | "postgresql" => {
                let mut options = sql_common::Options::of(options);
                let database = database::postgres(&mut options)?;
                Ok(Self::Sql { kind: "postgres", database, plan: options.plan(TOOL)? })
            }
            "sqlite" => {
                let mut options = sql_common::Options::of(options);
                let database = database::sqlite(&mut options)?;
                Ok(Self::Sql { kind: "sqlite", database, plan: options.plan(TOOL)? })
            }
            other => Err(Failure::new(
                "unsupported_source",
                format_args!("a source of the type `{other}` is not supported: `http`, `postgres` and `sqlite` are"),
            )),
        }
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Self::Http { .. } => "http",
            Self::Sql { kind, .. } => kind,
        }
    }

    pub fn read_all(self) -> Result<Found, Failure> {
        match self {
            Self::Http { plan, path } => {
                let answer = plan.request(None)?.send()?.ok()?;
                if answer.body.size() > u64::from(MOST_BYTES) {
                    return Err(too_large());
                }
                Ok(Found { document: answer.text()?, path, exact: false })
            }
            Self::Sql { kind, database, plan } => {
                let (script, text) = plan.on(database)?;
                let outcomes = script.objects(true).inline_bytes(MOST_BYTES).run(text)?;
                match outcomes.into_iter().next_back().and_then(|last| last.rows) {
                    Some(Rows::Json(document)) => Ok(Found { document, path: None, exact: kind == "postgres" }),
                    Some(Rows::Table(_)) => Err(too_large()),
                    None => Err(Failure::invalid_input("the last statement of `source` gives no rows: write a SELECT")),
                }
            }
        }
    }
}

fn too_large() -> Failure {
    Failure::new(
        "too_large",
        format_args!(
            "there are more than {} MiB of rows, which is more than one transfer takes: ask for them in parts, by page or \
             by a range of keys, in a loop",
            MOST_BYTES >> 20
        ),
    )
}

impl Found {
    pub fn rows(&self) -> Result<Vec<&RawValue>, Failure> {
        rows::of(&self.document, self.path.as_deref())
    }
}
