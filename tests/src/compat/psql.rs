//! Questions to the private database, by the client that comes with it: the checks need no driver of their own.

use std::process::{Command, Stdio};

use crate::Postgres;

/// Runs a script and answers with its rows as text: fields with `|` between them, a line each.
pub(super) fn ask(postgres: &Postgres, script: &str) -> Result<String, String> {
    let mut psql = Command::new("psql");
    psql.args(["--no-psqlrc", "--tuples-only", "--no-align", "--quiet", "--set", "ON_ERROR_STOP=1"]);
    psql.args(["--host", &postgres.host, "--port", &postgres.port.to_string(), "--username", &postgres.user]);
    psql.args(["--dbname", &postgres.database, "--command", script]);
    psql.env("PGPASSWORD", &postgres.password).current_dir("/").stdin(Stdio::null());
    let output = psql.output().map_err(|error| format!("psql: {error}; `cargo xtask setup` installs it"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
