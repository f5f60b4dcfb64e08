//! The one table of everything `plugin.toml` can say.
//!
//! The parser, the reference page, the JSON schema and the help text are all derived from these rows, so
//! none of them can know an option the others do not. Defaults and examples are TOML literals that go
//! through the same checks as an author's file; a test holds every row to that.

/// What values an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A plugin path such as `acme/orders/enrich`.
    Path,
    /// A semver version.
    Version,
    /// Text of at most this many bytes.
    Text {
        max: usize,
    },
    /// One of these words.
    OneOf(&'static [&'static str]),
    Flag,
    /// A whole number within these bounds, both included.
    Number {
        min: u64,
        max: u64,
    },
    /// A list of capability names.
    Capabilities,
    /// A list of host patterns.
    Hosts,
    /// A table from package name to semver requirement.
    Requirements,
    /// The name of an interpreter; empty for none.
    Language,
}

/// One option of `plugin.toml`.
#[derive(Debug, Clone, Copy)]
pub struct OptionRow {
    /// Dotted path in the file: `limits.memory_mb`.
    pub key: &'static str,
    pub kind: Kind,
    /// TOML literal; `None` for an option every file must have.
    pub default: Option<&'static str>,
    /// First version of noetl that reads it.
    pub since: &'static str,
    pub help: &'static str,
    /// TOML literal.
    pub example: &'static str,
}

impl Kind {
    /// For tables and help: `"fresh" or "resident"`, `number, 1 to 600000`.
    pub fn describe(self) -> String {
        match self {
            Kind::Path => "plugin path".to_owned(),
            Kind::Version => "semver version".to_owned(),
            Kind::Text { max } => format!("text, at most {max} bytes"),
            Kind::OneOf(words) => words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" or "),
            Kind::Flag => "true or false".to_owned(),
            Kind::Number { min, max } => format!("whole number, {min} to {max}"),
            Kind::Capabilities => "list of capabilities".to_owned(),
            Kind::Hosts => "list of host names".to_owned(),
            Kind::Requirements => "table of package = version requirement".to_owned(),
            Kind::Language => "name of a language".to_owned(),
        }
    }
}

/// Words of `world`, in the order of [`super::World::ALL`].
pub(super) const WORLDS: &[&str] =
    &["transform", "tool", "interpreter", "orchestrator", "runner", "state-builder", "projector", "publisher"];
pub(super) const INSTANCES: &[&str] = &["fresh", "resident"];
pub(super) const TARGETS: &[&str] = &["wasm32-unknown-unknown", "wasm32-wasip2"];

/// Every option, in the order documentation shows them.
pub const OPTIONS: &[OptionRow] = &[
    OptionRow {
        key: "path",
        kind: Kind::Path,
        default: None,
        since: "0.1.0",
        help: "Where the plugin lives in the catalog. The first segment is the tenant that owns it; `system/` and \
               `tools/` are the platform's own. `<tenant>/system/<name>` is made to replace a system service.",
        example: "\"acme/orders/enrich\"",
    },
    OptionRow {
        key: "version",
        kind: Kind::Version,
        default: None,
        since: "0.1.0",
        help: "Version of these bytes. Once pushed it never changes: other bytes need another version.",
        example: "\"1.0.0\"",
    },
    OptionRow {
        key: "world",
        kind: Kind::OneOf(WORLDS),
        default: None,
        since: "0.1.0",
        help: "What the plugin is: `transform` turns bytes into bytes, `tool` takes a JSON object and acts on the \
               outside. `interpreter` runs plugins that are source text. The others are services of the engine, which \
               live under `system/` and are resident.",
        example: "\"transform\"",
    },
    OptionRow {
        key: "description",
        kind: Kind::Text { max: 1024 },
        default: Some("\"\""),
        since: "0.1.0",
        help: "One line for people, shown in lists.",
        example: "\"adds the customer's region to an order\"",
    },
    OptionRow {
        key: "capabilities",
        kind: Kind::Capabilities,
        default: Some("[]"),
        since: "0.1.0",
        help: "What the plugin may ask of the host. Left out, it gets nothing; the ring and the operator can only \
               take away from this list.",
        example: "[\"log\", \"kv\"]",
    },
    OptionRow {
        key: "overridable",
        kind: Kind::Flag,
        default: Some("false"),
        since: "0.1.0",
        help: "Whether a tenant may bind a plugin of its own in the place of this one.",
        example: "true",
    },
    OptionRow {
        key: "instance",
        kind: Kind::OneOf(INSTANCES),
        default: Some("\"fresh\""),
        since: "0.1.0",
        help: "`fresh`: every call gets a new sandbox. `resident`: a sandbox is kept between calls and can be dropped \
               at any time; only for plugins whose memory is nothing but a cache.",
        example: "\"resident\"",
    },
    OptionRow {
        key: "retry_safe",
        kind: Kind::Flag,
        default: Some("false"),
        since: "0.1.0",
        help: "Whether a call whose outcome is not known, because its worker was lost, may be made again.",
        example: "true",
    },
    OptionRow {
        key: "limits.cpu_ms",
        kind: Kind::Number { min: 1, max: 600_000 },
        default: Some("1000"),
        since: "0.1.0",
        help: "Milliseconds the plugin itself may compute in one call.",
        example: "200",
    },
    OptionRow {
        key: "limits.wall_ms",
        kind: Kind::Number { min: 1, max: 3_600_000 },
        default: Some("10000"),
        since: "0.1.0",
        help: "Milliseconds from start to end of one call, waiting for the host included.",
        example: "30000",
    },
    OptionRow {
        key: "limits.memory_mb",
        kind: Kind::Number { min: 1, max: 4096 },
        default: Some("64"),
        since: "0.1.0",
        help: "MiB of memory, summed over all memories and tables of the sandbox. 128 when left out by a plugin that is \
               source text, since its sandbox has an interpreter in it.",
        example: "128",
    },
    OptionRow {
        key: "limits.output_mb",
        kind: Kind::Number { min: 1, max: 4096 },
        default: Some("16"),
        since: "0.1.0",
        help: "MiB a call may answer with. Larger results belong into a payload.",
        example: "64",
    },
    OptionRow {
        key: "limits.host_calls",
        kind: Kind::Number { min: 0, max: 1_000_000_000 },
        default: Some("10000"),
        since: "0.1.0",
        help: "Calls into the host that one call may make.",
        example: "500",
    },
    OptionRow {
        key: "limits.host_mb",
        kind: Kind::Number { min: 0, max: 65_536 },
        default: Some("64"),
        since: "0.1.0",
        help: "MiB that may cross into the host in arguments, summed over one call.",
        example: "256",
    },
    OptionRow {
        key: "failure.quarantine_after",
        kind: Kind::Number { min: 0, max: 1_000_000 },
        default: Some("5"),
        since: "0.1.0",
        help: "Faults in a row (traps, time-outs, exceeded limits) after which the plugin rests. 0: never.",
        example: "10",
    },
    OptionRow {
        key: "failure.quarantine_secs",
        kind: Kind::Number { min: 1, max: 86_400 },
        default: Some("30"),
        since: "0.1.0",
        help: "Seconds of that rest; then one call is let through, and its outcome decides.",
        example: "60",
    },
    OptionRow {
        key: "failure.rollback",
        kind: Kind::Flag,
        default: Some("true"),
        since: "0.1.0",
        help: "Whether a new version whose first calls fail is taken back by itself.",
        example: "false",
    },
    OptionRow {
        key: "http.allow",
        kind: Kind::Hosts,
        default: Some("[]"),
        since: "0.1.0",
        help: "Hosts that `http-client` may reach: `api.example.com`, `*.example.org` (any name below it), \
               `db.example.com:8443` (that port only), `*` (every host). The operator can only take away from this list.",
        example: "[\"api.example.com\", \"*.example.org\"]",
    },
    OptionRow {
        key: "contract",
        kind: Kind::Requirements,
        default: Some("{}"),
        since: "0.1.0",
        help: "Versions of the contract's packages that the plugin needs. Left out, what it imports decides.",
        example: "{ \"noetl:kv\" = \"0.1\" }",
    },
    OptionRow {
        key: "build.target",
        kind: Kind::OneOf(TARGETS),
        default: Some("\"wasm32-unknown-unknown\""),
        since: "0.1.0",
        help: "What `noetl plugin build` compiles for. The default imports capabilities only and runs in every ring; \
               `wasm32-wasip2` is for code that needs the standard library's clock, randomness or files, and is \
               refused in the `pure` ring.",
        example: "\"wasm32-wasip2\"",
    },
    OptionRow {
        key: "source.language",
        kind: Kind::Language,
        default: Some("\"\""),
        since: "0.1.0",
        help: "For a plugin that is source text: what runs it. `python` and `js` are there from the start; each is the \
               plugin `system/interpreters/<language>`. Left out, the plugin is a component of its own.",
        example: "\"python\"",
    },
    OptionRow {
        key: "source.entry",
        kind: Kind::Text { max: 255 },
        default: Some("\"\""),
        since: "0.1.0",
        help: "The file that is run first, by its path below the project's folder. Its functions are the plugin's.",
        example: "\"orders.py\"",
    },
];

/// The row of an option.
pub fn option(key: &str) -> Option<&'static OptionRow> {
    OPTIONS.iter().find(|row| row.key == key)
}

/// The tables (`limits`, `failure`, ...) that options live in.
pub fn tables() -> Vec<&'static str> {
    let mut names: Vec<&'static str> = OPTIONS.iter().filter_map(|row| Some(row.key.split_once('.')?.0)).collect();
    names.dedup();
    names
}

/// One MiB: the unit of the file; the host counts bytes.
pub(super) const MIB: u64 = 1 << 20;
