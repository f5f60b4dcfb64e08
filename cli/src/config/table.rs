//! The options of a server, as one table.
//!
//! Parsing, environment lookup, bounds, documentation, `config show` and `config check` are all derived from
//! the rows below; adding an option is adding a row and reading it where it takes effect. A test fails when a
//! row is read nowhere, so no option can be documented and then ignored.
//!
//! Invariants: keys are `section.name`; the environment name follows from the key; every default is itself a
//! valid value of its row.

use std::fmt;
use std::net::SocketAddr;

use toml::de::DeValue;

use noetl_contract::{Capability, Tenant};
use noetl_registry::signatures::Requirement;

/// What an option accepts.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// `host:port`; port 0 takes any free one.
    Address,
    /// A folder; empty means the platform's usual place.
    Folder,
    Flag,
    Number {
        min: u64,
        max: u64,
        unit: &'static str,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Any of these words.
    Words(&'static [&'static str]),
    /// Any of the contract's capabilities.
    Capabilities,
    /// Names of environment variables.
    Variables,
    /// Programs, by name or by path.
    Programs,
    /// Names of tenants, or `*`.
    Tenants,
    /// Pools and their sizes: `name=number`.
    Pools,
    /// Namespaces and who must have signed what lies there: `namespace=key|key`.
    Signers,
    /// A line for the shell; empty means that there is none.
    Command,
    /// Text that is never shown; empty means that there is none.
    Secret,
}

/// One option.
#[derive(Debug)]
pub struct Row {
    pub key: &'static str,
    pub kind: Kind,
    /// As the environment would spell it.
    pub default: &'static str,
    pub help: &'static str,
    /// The release that first had it.
    pub since: &'static str,
}

/// A value that satisfies its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Number(u64),
    Flag(bool),
    List(Vec<String>),
    Secret(String),
}

/// Variables whose name does not follow from the key, because other programs of a platform read them too.
const VARIABLES: &[(&str, &str)] =
    &[("server.internal_token", "NOETL_INTERNAL_API_TOKEN"), ("wallet.encryption_key", "NOETL_ENCRYPTION_KEY")];

/// Classes of failed calls that can count against a new version; a test holds them against the host's.
pub const FAULT_CLASSES: &[&str] = &["trap", "timeout", "memory", "output", "quota", "skew"];

const fn number(min: u64, max: u64, unit: &'static str) -> Kind {
    Kind::Number { min, max, unit }
}

const MIB: &str = "MiB";
const MS: &str = "ms";

macro_rules! rows {
    ($($key:literal: $kind:expr, $default:literal, $since:literal, $help:literal;)*) => {
        &[$(Row { key: $key, kind: $kind, default: $default, since: $since, help: $help }),*]
    };
}

/// Every option there is, by section.
#[rustfmt::skip]
pub const TABLE: &[Row] = rows! {
    "server.listen": Kind::Address, "127.0.0.1:8082", "0.1.0",
        "Address the API listens on. Every call needs a token, but the server speaks plain HTTP: put TLS in front of it before it leaves the machine. Port 0 takes any free port.";
    "server.data": Kind::Folder, "", "0.1.0",
        "Folder of the log, the payloads and the caches; one server at a time. Empty means `$XDG_DATA_HOME/noetl`, or `~/.local/share/noetl`. `--data` and `NOETL_DATA` go first.";
    "server.max_component_mb": number(1, 4096, MIB), "256", "0.1.0",
        "Largest component that can be pushed.";
    "server.max_call_mb": number(1, 4096, MIB), "512", "0.1.0",
        "Largest body of a call.";
    "server.header_timeout_secs": number(1, 3600, "s"), "30", "0.1.0",
        "Longest time the head of a request may take to arrive; an idle connection is closed after it too.";
    "server.body_idle_secs": number(1, 3600, "s"), "30", "0.1.0",
        "Longest pause while the body of a request arrives.";
    "server.body_min_rate": number(0, 1 << 30, "bytes a second"), "1024", "0.1.0",
        "Least speed of a body on average, counted once `server.body_idle_secs` are over. 0 asks for none.";
    "server.body_memory_mb": number(64, 1 << 20, MIB), "256", "0.1.0",
        "Memory that JSON bodies of requests may take together; further ones wait, in turn by tenant. Components and inputs of calls go to files and are not counted here.";
    "server.metrics_open": Kind::Choice(&["loopback", "always", "never"]), "loopback", "0.1.0",
        "When `/metrics` answers without a token: when the server listens on loopback only, always, or never.";
    "server.max_connections": number(1, 1_000_000, "connections"), "4096", "0.1.0",
        "Connections served at a time; more of them wait.";
    "server.drain_secs": number(0, 3600, "s"), "10", "0.1.0",
        "Time that open requests get to finish when the server stops.";
    "server.internal_token": Kind::Secret, "", "0.1.0",
        "Token that services of the platform show at `/api/internal/`; at least 16 bytes, compared in constant time. Empty closes those routes to everybody but service tokens of an administrator.";
    "log.format": Kind::Choice(&["text", "json"]), "text", "0.1.0",
        "Form of the server's own log on stderr.";
    "log.level": Kind::Choice(&["error", "warn", "info", "debug", "trace"]), "info", "0.1.0",
        "Least severe line of the server's own log that is written.";
    "host.memory_budget_mb": number(64, 1 << 20, MIB), "2048", "0.1.0",
        "Memory all running calls may use together, their inputs included. A call that does not fit waits, in turn by tenant; it does not fail. One tenant gets at most three quarters of what others leave.";
    "host.system_reserve_mb": number(0, 1 << 20, MIB), "256", "0.1.0",
        "Part of the memory budget that only the system ring can use, so that tenants cannot starve the platform.";
    "host.threads": number(0, 1024, "threads"), "0", "0.1.0",
        "Threads that run guests. 0 means one for each processor.";
    "host.shards": number(0, 1024, "threads"), "0", "0.1.0",
        "Threads that run resident components. 0 means one for each processor.";
    "host.max_instances": number(1, 100_000, "instances"), "256", "0.1.0",
        "Guest memories that can exist at the same time; further calls wait, in turn by tenant.";
    "host.max_payload_mb": number(1, 1 << 30, MIB), "4096", "0.1.0",
        "Largest payload a plugin can make or receive, such as the body of an HTTP answer.";
    "host.max_temporary_mb": number(1, 1 << 30, MIB), "4096", "0.1.0",
        "Most that one call can have in temporary files at once: all its payloads that are not stored, together.";
    "host.max_cpu_ms": number(1, 86_400_000, MS), "60000", "0.1.0",
        "Most compute time a manifest can ask for; a higher limit in a manifest is cut to this.";
    "host.max_wall_ms": number(1, 86_400_000, MS), "300000", "0.1.0",
        "Most time from start to end of a call that a manifest can ask for.";
    "host.max_memory_mb": number(1, 65_536, MIB), "2048", "0.1.0",
        "Most memory that a manifest can ask for, summed over all memories and tables of a call.";
    "host.max_output_mb": number(1, 4096, MIB), "512", "0.1.0",
        "Most bytes that a manifest can ask to answer with.";
    "host.max_host_calls": number(1, 1_000_000_000, "calls"), "10000000", "0.1.0",
        "Most calls into the host that a manifest can ask for.";
    "host.max_host_mb": number(1, 1 << 20, MIB), "4096", "0.1.0",
        "Most bytes of arguments that a manifest can ask to hand to the host in one call.";
    "host.max_modules": number(1, 100_000, "modules"), "256", "0.1.0",
        "Compiled components kept in memory; the least recently used goes first and is loaded again from the cache when needed.";
    "host.compile_timeout_secs": number(1, 3600, "s"), "120", "0.1.0",
        "Time one component may take to compile before the push is refused.";
    "host.compile_memory_mb": number(128, 1 << 20, MIB), "4096", "0.1.0",
        "Memory of the child process that compiles a component.";
    "host.compile_jobs": number(1, 256, "jobs"), "1", "0.1.0",
        "Components looked at or compiled at the same time; further ones wait, in turn by tenant.";
    "rollback.calls": number(0, 1_000_000, "calls"), "20", "0.1.0",
        "How many first calls of a new version are watched. 0 switches automatic rollback off.";
    "rollback.max_failures": number(1, 1_000_000, "calls"), "5", "0.1.0",
        "Failures among the watched calls at which the version is rolled back.";
    "rollback.window_secs": number(1, 604_800, "s"), "3600", "0.1.0",
        "How long after its switch a version is watched.";
    "rollback.classes": Kind::Words(FAULT_CLASSES), "trap,timeout,memory,skew", "0.1.0",
        "Classes of failure that count. A failure the plugin answers itself never counts.";
    "policy.deny_capabilities": Kind::Capabilities, "", "0.1.0",
        "Capabilities no plugin gets on this server, whatever its manifest and ring say.";
    "policy.signers": Kind::Signers, "", "0.1.0",
        "Whose signatures plugins need, by namespace: `system/=ed25519:...|ed25519:...` takes what one of the keys has signed. A namespace ends in `/`, or is one path, or `*` for all. All entries that match a path have to be met. Signatures are verified at the push and whenever a version is made ready, so after a restart with other keys an unsigned version is not served. What is compiled into the binary needs none.";
    "policy.http_private_addresses": Kind::Flag, "false", "0.1.0",
        "Whether plugins may reach loopback and private addresses. Link-local addresses and services that hand out a machine's credentials stay out of reach.";
    "policy.insecure_tls": Kind::Flag, "false", "0.1.0",
        "Whether a request of a plugin may ask not to have the server's certificate verified (`verify_ssl: false` of the tool `http`). Whoever is on the way can then read and change what is sent, credentials included.";
    "policy.shell": Kind::Flag, "false", "0.1.0",
        "Whether playbooks of the tenants in `policy.shell_tenants` may run programs of this machine with the tool `shell`. They run outside of every sandbox, as the user of the server: whoever may start a playbook of theirs can do what that user can.";
    "policy.shell_tenants": Kind::Tenants, "", "0.1.0",
        "Tenants that `policy.shell` is for, or `*` for all; none when empty.";
    "policy.shell_programs": Kind::Programs, "", "0.1.0",
        "Programs that `policy.shell` is for, as playbooks name them; any when empty. A command that is one text runs in the program `sh`, a command that is a list runs its first word.";
    "policy.shell_folder": Kind::Folder, "", "0.1.0",
        "Folder that programs run in; a playbook can name one below it. Empty gives each call an empty folder of its own, which goes with the call.";
    "files.folder": Kind::Folder, "", "0.1.0",
        "Folder of files that plugins with the capability `files` may read, such as the scripts of `python` steps; they can neither write nor list it, and no link in it leads out of it. `{tenant}` in it stands for the name of the tenant, which gives each one a folder of its own; without it only the tenant `main` may read. Empty means none.";
    "sql.folder": Kind::Folder, "", "0.1.0",
        "Folder of the SQLite databases that plugins with the capability `sql` reach by name, a folder a tenant in it. Empty means that there are none but those in memory.";
    "sql.connections": number(1, 1000, "connections"), "16", "0.1.0",
        "Connections to a PostgreSQL server for one credential of a tenant; further scripts wait.";
    "logs.keep_lines": number(0, 10_000_000, "lines"), "10000", "0.1.0",
        "Log lines of plugins kept in memory for `noetl plugin logs`; the oldest go first.";
    "engine.shards": number(0, 1024, "threads"), "0", "0.1.0",
        "Threads that decide what executions do next; an execution and its children are on one of them. 0 means half of the processors.";
    "engine.pools": Kind::Pools, "shared=64,system=16", "0.1.0",
        "Pools that commands run in, and how many of them at a time; further ones wait. `shared` is for all, `system` for playbooks under `system/`; an execution can ask for any other one by its name.";
    "engine.failures": Kind::Choice(&["strict", "lenient"]), "strict", "0.1.0",
        "What a failed step that nothing handles does where its playbook does not say: fail the execution (`strict`), or have its arcs followed as if it had succeeded (`lenient`).";
    "engine.environment": Kind::Variables, "", "0.1.0",
        "Environment variables of the server that playbooks may see as `env.NAME`. Values become part of the log of executions: do not name secrets.";
    "wallet.encryption_key": Kind::Secret, "", "0.1.0",
        "Key that seals credentials: 32 random bytes in base64 (`openssl rand -base64 32`). Several are separated by commas: the first seals, all of them open; after `noetl credential rotate --kek` only the first is needed. Empty means the file `wallet.key` of the data folder, which is made at the first start.";
    "wallet.key_command": Kind::Command, "", "0.1.0",
        "Command that prints the key in place of `wallet.encryption_key`, or several with line ends between them. It is run by `sh -c` at the start and at each rotation, and has 30 s. It goes before `wallet.encryption_key`.";
    "wallet.audit_days": number(1, 36_500, "days"), "90", "0.1.0",
        "How long it is remembered who used a credential.";
    "wallet.audit_lines": number(1, 100_000_000, "lines"), "100000", "0.1.0",
        "Uses of credentials that are remembered of each tenant; the oldest go first.";
    "wallet.former_days": number(0, 3650, "days"), "30", "0.1.0",
        "How long the value that a credential had before it was changed is kept, sealed, so that it is masked when a host gives it back. Tokens that were fetched are kept for as long as they are good and a day more. 0 keeps none; a deleted credential is gone at once.";
};

/// The row of `key`.
pub fn row(key: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.key == key)
}

impl Row {
    /// The environment variable that overrides it: `host.max_cpu_ms` is `NOETL_HOST_MAX_CPU_MS`.
    pub fn env(&self) -> String {
        match VARIABLES.iter().find(|(key, _)| *key == self.key) {
            Some((_, name)) => (*name).to_owned(),
            None => format!("NOETL_{}", self.key.replace('.', "_").to_uppercase()),
        }
    }

    pub fn section(&self) -> &'static str {
        self.key.split('.').next().unwrap_or(self.key)
    }

    pub fn name(&self) -> &'static str {
        self.key.split('.').nth(1).unwrap_or(self.key)
    }

    pub fn default_value(&self) -> Value {
        self.kind.parse_text(self.default).expect("a test parses the default of every row")
    }
}

impl Kind {
    /// Reads the form the environment and the command line use.
    pub fn parse_text(self, text: &str) -> Result<Value, String> {
        match self {
            Kind::Address | Kind::Folder | Kind::Command | Kind::Choice(_) => self.check(Value::Text(text.to_owned())),
            Kind::Flag => match text {
                "true" => Ok(Value::Flag(true)),
                "false" => Ok(Value::Flag(false)),
                _ => Err(format!("`{text}` is neither `true` nor `false`")),
            },
            Kind::Number { .. } => {
                let number = text.parse().map_err(|_| format!("`{text}` is not a whole number"))?;
                self.check(Value::Number(number))
            }
            Kind::Secret => self.check(Value::Secret(text.to_owned())),
            Kind::Words(_)
            | Kind::Capabilities
            | Kind::Variables
            | Kind::Programs
            | Kind::Tenants
            | Kind::Pools
            | Kind::Signers => {
                let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
                self.check(Value::List(words.map(str::to_owned).collect()))
            }
        }
    }

    /// Reads the form a TOML file uses.
    pub fn parse_toml(self, value: &DeValue<'_>) -> Result<Value, String> {
        let wanted = |what: &str| format!("must be {what}, not {}", article(value.type_str()));
        match self {
            Kind::Address | Kind::Folder | Kind::Command | Kind::Choice(_) => {
                let text = value.as_str().ok_or_else(|| wanted("a string"))?;
                self.check(Value::Text(text.to_owned()))
            }
            Kind::Flag => Ok(Value::Flag(value.as_bool().ok_or_else(|| wanted("`true` or `false`"))?)),
            Kind::Number { .. } => {
                let digits = value.as_integer().ok_or_else(|| wanted("a whole number"))?;
                let number = u64::from_str_radix(&digits.as_str().replace('_', ""), digits.radix())
                    .map_err(|_| format!("`{digits}` is out of range: {}", self.describe()))?;
                self.check(Value::Number(number))
            }
            Kind::Secret => {
                let text = value.as_str().ok_or_else(|| wanted("a string"))?;
                self.check(Value::Secret(text.to_owned()))
            }
            Kind::Words(_)
            | Kind::Capabilities
            | Kind::Variables
            | Kind::Programs
            | Kind::Tenants
            | Kind::Pools
            | Kind::Signers => {
                let items = value.as_array().ok_or_else(|| wanted("a list of strings"))?;
                let words = items.iter().map(|item| item.get_ref().as_str().map(str::to_owned));
                self.check(Value::List(words.collect::<Option<_>>().ok_or("every item must be a string")?))
            }
        }
    }

    fn check(self, value: Value) -> Result<Value, String> {
        match (self, &value) {
            (Kind::Address, Value::Text(text)) if text.parse::<SocketAddr>().is_err() => {
                return Err(format!("`{text}` is not an address and a port: use for example `127.0.0.1:8082`"));
            }
            (Kind::Number { min, max, .. }, Value::Number(number)) if !(min..=max).contains(number) => {
                return Err(format!("{number} is out of range: {}", self.describe()));
            }
            (Kind::Choice(words), Value::Text(text)) => known_word(text, words)?,
            (Kind::Words(words), Value::List(list)) => {
                list.iter().try_for_each(|word| known_word(word, words))?;
            }
            (Kind::Capabilities, Value::List(list)) => {
                let names = Capability::ALL.map(Capability::name);
                list.iter().try_for_each(|word| known_word(word, &names))?;
            }
            (Kind::Variables, Value::List(list)) => list.iter().try_for_each(|name| variable(name))?,
            (Kind::Programs, Value::List(list)) => list.iter().try_for_each(|name| program(name))?,
            (Kind::Tenants, Value::List(list)) => list.iter().try_for_each(|name| tenant(name))?,
            (Kind::Pools, Value::List(list)) => pools(list).map(drop)?,
            (Kind::Signers, Value::List(list)) => signers(list).map(drop)?,
            (Kind::Secret, Value::Secret(secret)) if (1..SHORTEST_SECRET).contains(&secret.len()) => {
                return Err(format!("is too short to be a secret: use at least {SHORTEST_SECRET} bytes"));
            }
            _ => {}
        }
        Ok(value)
    }

    /// What to write, for the documentation and for messages.
    pub fn describe(self) -> String {
        match self {
            Kind::Address => "address and port".to_owned(),
            Kind::Folder => "folder".to_owned(),
            Kind::Command => "a command line, or empty".to_owned(),
            Kind::Flag => "`true` or `false`".to_owned(),
            Kind::Number { min, max, unit } => format!("a whole number from {min} to {max} ({unit})"),
            Kind::Choice(words) => format!("one of {}", quoted(words)),
            Kind::Words(words) => format!("list of {}", quoted(words)),
            Kind::Capabilities => format!("list of {}", quoted(&Capability::ALL.map(Capability::name))),
            Kind::Variables => "list of names of environment variables".to_owned(),
            Kind::Programs => "list of names or absolute paths of programs".to_owned(),
            Kind::Tenants => "list of names of tenants, or `*`".to_owned(),
            Kind::Pools => "list of `name=number`, each number from 1 to 100000".to_owned(),
            Kind::Signers => "list of `namespace=key`, with `|` between keys of which one is enough".to_owned(),
            Kind::Secret => format!("text of at least {SHORTEST_SECRET} bytes, or empty; never shown"),
        }
    }
}

/// Anything shorter can be guessed.
const SHORTEST_SECRET: usize = 16;

fn variable(name: &str) -> Result<(), String> {
    let letters = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let good = name.chars().all(letters) && !name.is_empty() && !name.starts_with(|first: char| first.is_ascii_digit());
    if good { Ok(()) } else { Err(format!("`{name}` cannot be the name of an environment variable")) }
}

fn program(name: &str) -> Result<(), String> {
    let good = name.starts_with('/') || !(name.is_empty() || name.contains('/'));
    if good {
        Ok(())
    } else {
        Err(format!("`{name}` is not a program: write its name, such as `git`, or a whole path"))
    }
}

fn tenant(name: &str) -> Result<(), String> {
    if name == "*" {
        return Ok(());
    }
    Tenant::new(name).map(drop).map_err(|error| error.to_string())
}

/// Names and sizes of pools as they are written.
pub fn pools(list: &[String]) -> Result<Vec<(String, usize)>, String> {
    let mut pools: Vec<(String, usize)> = Vec::new();
    for text in list {
        let wrong = || format!("`{text}` is not a pool: write its name and size, such as `shared=64`");
        let (name, size) = text.split_once('=').ok_or_else(wrong)?;
        let letters = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        let size = size.parse().ok().filter(|size| (1..=100_000).contains(size)).ok_or_else(wrong)?;
        if name.is_empty() || !name.chars().all(letters) {
            return Err(wrong());
        }
        if pools.iter().any(|(known, _)| known == name) {
            return Err(format!("the pool `{name}` is there twice"));
        }
        pools.push((name.to_owned(), size));
    }
    match ["shared", "system"].into_iter().find(|needed| !pools.iter().any(|(name, _)| name == needed)) {
        Some(missing) => Err(format!("the pool `{missing}` is missing: add for example `{missing}=16`")),
        None => Ok(pools),
    }
}

/// Who must have signed what, as it is written.
pub fn signers(list: &[String]) -> Result<Vec<Requirement>, String> {
    list.iter().map(|entry| entry.parse()).collect()
}

fn known_word(word: &str, words: &[&str]) -> Result<(), String> {
    if words.contains(&word) {
        return Ok(());
    }
    let nearest = super::suggest::nearest(word, words.iter().copied());
    let hint = nearest.map_or_else(|| format!("use {}", quoted(words)), |near| format!("did you mean `{near}`?"));
    Err(format!("`{word}` is not known: {hint}"))
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

fn article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {kind}")
}

impl fmt::Display for Value {
    /// As a TOML file would have it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let toml = match self {
            Value::Text(text) => toml::Value::String(text.clone()),
            Value::Number(number) => return write!(f, "{number}"),
            Value::Flag(flag) => toml::Value::Boolean(*flag),
            // Says only whether there is one.
            Value::Secret(secret) if secret.is_empty() => toml::Value::String(String::new()),
            Value::Secret(_) => return f.write_str("(set)"),
            Value::List(list) => toml::Value::Array(list.iter().cloned().map(toml::Value::String).collect()),
        };
        write!(f, "{toml}")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_is_well_formed_and_its_default_is_valid() {
        let mut keys = BTreeSet::new();
        let mut envs = BTreeSet::new();
        for row in TABLE {
            assert_eq!(row.key.split('.').count(), 2, "{}", row.key);
            assert!(row.key.chars().all(|c| matches!(c, 'a'..='z' | '_' | '.')), "{}", row.key);
            assert!(row.help.ends_with('.') && row.help.len() > 20, "{}: help is not a sentence", row.key);
            assert!(row.kind.parse_text(row.default).is_ok(), "{}: default", row.key);
            assert!(keys.insert(row.key) && envs.insert(row.env()), "{} is there twice", row.key);
        }
    }

    #[test]
    fn rows_of_a_section_stand_together() {
        let mut sections: Vec<_> = TABLE.iter().map(Row::section).collect();
        sections.dedup();
        let distinct: BTreeSet<_> = sections.iter().collect();
        assert_eq!(distinct.len(), sections.len(), "a section is split: {sections:?}");
    }

    #[test]
    fn values_out_of_bounds_say_what_is_allowed() {
        let kind = row("host.threads").expect("row").kind;
        assert_eq!(kind.parse_text("4"), Ok(Value::Number(4)));
        let message = kind.parse_text("5000").expect_err("out of range");
        assert!(message.contains("from 0 to 1024"), "{message}");
        assert!(kind.parse_text("-1").is_err() && kind.parse_text("4.5").is_err());
        let message = row("log.level").expect("row").kind.parse_text("inof").expect_err("unknown word");
        assert!(message.contains("did you mean `info`?"), "{message}");
        let kind = row("policy.deny_capabilities").expect("row").kind;
        assert_eq!(kind.parse_text("kv, log"), Ok(Value::List(vec!["kv".into(), "log".into()])));
        assert!(kind.parse_text("kvv").expect_err("unknown").contains("did you mean `kv`?"));
    }

    #[test]
    fn pools_and_variables_are_checked() {
        let kind = row("engine.pools").expect("row").kind;
        let list = |text: &str| kind.parse_text(text);
        assert_eq!(
            list("shared=64, system=16,big=2").map(|value| value.to_string()),
            Ok("[\"shared=64\", \"system=16\", \"big=2\"]".into())
        );
        for (bad, why) in [
            ("shared=64", "`system` is missing"),
            ("shared,system=1", "name and size"),
            ("shared=0,system=1", "`shared=0` is not a pool"),
            ("shared=1,system=1,shared=2", "twice"),
            ("shared=1,system=1,a b=1", "`a b=1`"),
        ] {
            let message = list(bad).expect_err(bad);
            assert!(message.contains(why), "{bad}: {message}");
        }
        let kind = row("engine.environment").expect("row").kind;
        assert!(kind.parse_text("HOME,_X9").is_ok());
        assert!(kind.parse_text("A=B").is_err() && kind.parse_text("9X").is_err());
        let kind = row("policy.shell_programs").expect("row").kind;
        assert!(kind.parse_text("git,/usr/bin/env").is_ok() && kind.parse_text("bin/git").is_err());
        let kind = row("policy.shell_tenants").expect("row").kind;
        assert!(kind.parse_text("main,other").is_ok() && kind.parse_text("*").is_ok());
        assert!(kind.parse_text("a/b").is_err());
    }

    #[test]
    fn a_secret_is_never_shown_and_not_guessable() {
        let row = row("server.internal_token").expect("row");
        assert_eq!(row.env(), "NOETL_INTERNAL_API_TOKEN");
        let secret = row.kind.parse_text("0123456789abcdef").expect("long enough");
        assert_eq!((secret.to_string(), row.default_value().to_string()), ("(set)".to_owned(), "\"\"".to_owned()));
        let message = row.kind.parse_text("hunter2").expect_err("too short");
        assert!(!message.contains("hunter2"), "{message}");
    }

    /// An option nobody reads is a promise nobody keeps.
    #[test]
    fn every_row_is_read_where_it_takes_effect() {
        let readers = concat!(include_str!("../serve/options.rs"), include_str!("../serve/mod.rs"));
        for row in TABLE {
            assert!(readers.contains(&format!("\"{}\"", row.key)), "nothing reads {}", row.key);
        }
    }
}
