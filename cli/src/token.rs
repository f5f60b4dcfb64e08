//! `noetl token`: who may use the server.
//!
//! The secret of a new token is printed once, on stdout and alone, so that `TOKEN=$(noetl token create ...)` works;
//! the server stores only its hash.

use std::time::{SystemTime, UNIX_EPOCH};

use clap::Subcommand;
use serde_json::json;

use crate::args::Context;
use crate::failure::{Failure, Outcome};
use crate::output::{cell, table, time_cell};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a token and print its secret, once.
    Create {
        /// What people will know it by.
        #[arg(long)]
        name: String,
        /// The only tenant it may touch; without this it is a token for all tenants.
        #[arg(long)]
        tenant: Option<String>,
        /// Most trusted ring it may push to [default: user for a tenant's, system for one for all tenants].
        #[arg(long, value_name = "RING", value_parser = ["pure", "user", "tenant", "system"])]
        privilege: Option<String>,
        /// Something no privilege includes; `credential:reveal` is to be shown the values of credentials.
        #[arg(long, value_name = "RIGHT", value_parser = ["credential:reveal"])]
        right: Vec<String>,
        /// Lifetime such as `12h`, `30d` or `8w`; without this it does not expire.
        #[arg(long, value_name = "AGE")]
        expires: Option<String>,
    },
    /// List tokens; secrets are not kept and cannot be shown.
    List,
    /// End a token at once.
    Revoke {
        /// The token's id, as `noetl token list` shows it.
        id: String,
    },
}

pub async fn run(command: Command, context: &Context) -> Outcome {
    let client = context.client()?;
    let output = context.output;
    match command {
        Command::Create { name, tenant, privilege, right, expires } => {
            let lifetime = expires.as_deref().map(lifetime_ms).transpose()?;
            let expires_at_ms = lifetime.map(|lifetime| now_ms() + lifetime);
            let body = json!({ "name": name, "tenant": tenant, "privilege": privilege, "rights": right,
                               "expires_at_ms": expires_at_ms });
            let answer = client.post("/api/tokens", &body).await?;
            if !output.json {
                output.say(format_args!("token {} made; its secret is shown only now:", cell(&answer["id"])));
            }
            output.result(&answer, |_| cell(&answer["secret"]));
        }
        Command::List => {
            let answer = client.get("/api/tokens", &[]).await?;
            let rows = answer["tokens"].as_array().cloned().unwrap_or_default();
            output.result(&answer, |_| {
                table(
                    ["id", "name", "tenant", "privilege", "rights", "created", "expires"],
                    rows.iter().map(|row| {
                        let tenant = row["tenant"].as_str().map_or_else(|| "all".to_owned(), str::to_owned);
                        let expires = if row["expires_at_ms"].is_null() {
                            "never".to_owned()
                        } else {
                            time_cell(&row["expires_at_ms"])
                        };
                        [
                            cell(&row["id"]),
                            cell(&row["name"]),
                            tenant,
                            cell(&row["privilege"]),
                            cell(&row["rights"]),
                            time_cell(&row["created_at_ms"]),
                            expires,
                        ]
                    }),
                )
            });
        }
        Command::Revoke { id } => {
            if !id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')) || id.is_empty() {
                return Err(
                    Failure::usage(format!("`{id}` is not a token's id")).next("`noetl token list` shows the ids")
                );
            }
            client.delete(&format!("/api/tokens/{id}"), &[]).await?;
            output.result(&json!({ "revoked": id }), |_| format!("token {id} is revoked"));
        }
    }
    Ok(())
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// `90s`, `15m`, `12h`, `30d`, `8w` in milliseconds.
fn lifetime_ms(text: &str) -> Outcome<u64> {
    let wrong =
        || Failure::usage(format!("`{text}` is not a lifetime: use a number and s, m, h, d or w, such as `30d`"));
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return Err(wrong()),
    };
    let count: u64 = text[..text.len() - unit.len_utf8()].parse().map_err(|_| wrong())?;
    count.checked_mul(seconds * 1000).filter(|ms| (1..1 << 50).contains(ms)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_read_and_nonsense_is_refused() {
        assert_eq!(lifetime_ms("30d").expect("valid"), 30 * 86_400_000);
        assert_eq!(lifetime_ms("90s").expect("valid"), 90_000);
        for bad in ["", "d", "30", "-1d", "0h", "1.5h", "30 d", "99999999999999w", "3é"] {
            assert!(lifetime_ms(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
