//! The first token: made at the first start, in a file that only the owner of the data folder can read.
//!
//! The secret is written to the file before its hash is written to the log. A crash between the two leaves
//! a file whose secret the log does not know; the next start takes that secret on, so nobody is locked out.
//! Deleting the file is how a lost token is replaced: the next start makes another and revokes the ones it
//! made before. A token that was revoked on purpose stays revoked while its file is there.

use std::collections::BTreeSet;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use noetl_contract::Ring;

use super::{NewToken, PREFIX, TokenError, TokenInfo, Tokens, random_secret};
use crate::names::Actor;

/// What became of the administrator's token at this start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admin {
    /// Made now; the secret is in the file.
    Created(TokenInfo),
    /// The file's token is valid.
    Reused(TokenInfo),
    /// The file's token was revoked; delete the file to have another made.
    Revoked(TokenInfo),
}

#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    #[error("the administrator's token in {file} could not be read or written: {source}")]
    Io { file: String, source: io::Error },
    #[error("{file} does not hold a token: put the right one back, or delete the file to have a new one made")]
    NotAToken { file: String },
    #[error(transparent)]
    Token(#[from] TokenError),
}

impl Tokens {
    /// Makes sure that there is a token for the administrator, and that `file` holds its secret, readable
    /// by its owner alone.
    pub async fn ensure_admin(&self, file: &Path) -> Result<Admin, AdminError> {
        let failed = |source| AdminError::Io { file: file.display().to_string(), source };
        let Some(secret) = read_secret(file).map_err(failed)? else {
            let secret = random_secret()?;
            write_secret(file, &secret).map_err(failed)?;
            return self.take_on(&secret).await.map(Admin::Created);
        };
        if !is_secret(&secret) {
            return Err(AdminError::NotAToken { file: file.display().to_string() });
        }
        let known = self
            .ledger
            .with(|state| state.by_secret(&secret).map(|token| (TokenInfo::clone(&token.info), token.revoked)));
        match known {
            Some((info, true)) => Ok(Admin::Revoked(info)),
            Some((info, false)) => Ok(Admin::Reused(info)),
            None => self.take_on(&secret).await.map(Admin::Created),
        }
    }

    /// Records the secret's token and ends those an earlier start made.
    async fn take_on(&self, secret: &str) -> Result<TokenInfo, AdminError> {
        let server = Actor::server();
        let new = NewToken {
            name: "admin".to_owned(),
            tenant: None,
            privilege: Ring::System,
            rights: BTreeSet::new(),
            expires_at_ms: None,
        };
        let info = self.record(&server, new, secret, true).await?;
        let earlier: Vec<String> = self.ledger.with(|state| {
            let made_before = state.tokens.values().filter(|token| token.bootstrap && !token.revoked);
            made_before.map(|token| token.info.id.clone()).filter(|id| *id != info.id).collect()
        });
        for id in earlier {
            self.revoke(&server, &id).await?;
        }
        Ok(info)
    }
}

fn is_secret(text: &str) -> bool {
    text.strip_prefix(PREFIX)
        .is_some_and(|digits| digits.len() == 64 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
}

/// The file's secret; none when there is no file. Rights beyond the owner's are taken away.
fn read_secret(path: &Path) -> io::Result<Option<String>> {
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let rights = file.metadata()?.permissions().mode() & 0o777;
        if rights & 0o077 != 0 {
            tracing::warn!(file = %path.display(), rights = format!("{rights:o}"), "others could read the token; closed");
            file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        }
    }
    let mut text = String::new();
    // A secret has 70 bytes; whatever is much longer is none.
    file.take(1024).read_to_string(&mut text)?;
    Ok(Some(text.trim().to_owned()))
}

/// The file appears whole, with its rights, or not at all.
fn write_secret(path: &Path, secret: &str) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Temporary files are made with the rights 0600.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(file, "{secret}")?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    std::fs::File::open(folder)?.sync_all()
}
