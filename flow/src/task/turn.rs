//! What goes between a runner and whoever acts for it, as plain types: one [`Turn`] in, one [`Next`] out.

/// What happened since the last turn of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn<'a> {
    pub execution: u64,
    /// A [`crate::ids::CommandId`] as text.
    pub command: &'a str,
    /// Milliseconds since 1970.
    pub time_ms: u64,
    /// A [`super::Spec`] and [`super::Inputs`], one line of JSON each.
    pub task: &'a [u8],
    /// As the last turn left it; empty for the first.
    pub continuation: &'a [u8],
    pub news: News,
}

#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// The first turn.
    Begin,
    Called(Called),
    /// The payloads asked for: sha256 and content, nothing when it is gone.
    Resolved(Vec<(String, Option<Vec<u8>>)>),
    Executed(Executed),
    Slept,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Called {
    pub outcome: Result<Answered, Failed>,
    pub duration_ms: u64,
    /// Who answered, and the sha256 of it.
    pub plugin: String,
    pub digest: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// One JSON value.
    pub output: String,
    /// Bulk beside it: sha256, size in bytes, media type.
    pub body: Option<(String, u64, String)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Failed {
    pub code: String,
    pub message: String,
    pub retryable: bool,
    /// The tool may have acted before it was lost.
    pub unknown: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Executed {
    pub execution: u64,
    /// `started`, `completed`, `failed` or `cancelled`.
    pub status: String,
    /// One JSON object: `output`, `error`, `steps`.
    pub body: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Next {
    pub action: Action,
    pub continuation: Vec<u8>,
}

/// What to do before the next turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    Call(Call),
    /// Payloads by their sha256.
    Resolve(Vec<String>),
    Execute(Execute),
    /// For so many milliseconds.
    Sleep(u64),
    Done(Done),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub kind: String,
    /// A plugin by its path, for the kind `wasm`.
    pub plugin: Option<String>,
    pub version: Option<String>,
    /// One JSON object.
    pub arguments: String,
    /// Bulk for the tool: sha256.
    pub body: Option<String>,
    /// What the plugin may hold at most.
    pub capabilities: Option<Vec<String>>,
    pub timeout_ms: Option<u64>,
    pub label: String,
    /// The how-manieth piece of work with this label: a failed call that is made again is the same piece. With the command
    /// and the label it names an effect, and it is the same again when a command that was lost is run again.
    pub visit: u32,
    /// The how-manieth call with this label.
    pub attempt: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Execute {
    pub path: String,
    pub version: Option<u32>,
    /// One JSON object.
    pub payload: String,
    pub wait: bool,
    /// The step whose result is wanted.
    pub returns: Option<String>,
    /// How long it is waited for.
    pub timeout_ms: Option<u64>,
    pub label: String,
    /// As that of a [`Call`], but an execution that failed is over: trying again is another piece of work.
    pub visit: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// A [`super::Report`] as JSON.
    pub report: Vec<u8>,
    /// The whole result as JSON, when the report has only an extract of it.
    pub bulk: Option<Vec<u8>>,
}
