//! `noetl plugin fetch`: downloads a component, and checks that its bytes have the digest the server names.
//!
//! The file appears whole or not at all: bytes are written beside it and renamed when they are right.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use noetl_contract::{Digest, PluginPath, Version};
use reqwest::Method;
use reqwest::header::ETAG;
use serde_json::json;

use crate::args::Context;
use crate::client::Client;
use crate::failure::{self, Failure, Outcome};
use crate::output::size;

#[derive(Debug, Args)]
pub struct Fetch {
    path: PluginPath,
    /// The version [default: the channel's].
    #[arg(long)]
    version: Option<Version>,
    /// The channel [default: stable].
    #[arg(long, conflicts_with = "version")]
    channel: Option<String>,
    /// The file to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

impl Fetch {
    pub async fn run(self, context: &Context) -> Outcome {
        let bytes = download(&context.client()?, &self.path, self.version.as_ref(), self.channel.as_deref()).await?;
        write_whole(&self.output, &bytes)?;
        let digest = Digest::of(&bytes);
        let value = json!({ "file": self.output, "size": bytes.len(), "digest": digest });
        context
            .output
            .result(&value, |_| format!("{}  {}  {}", self.output.display(), size(bytes.len() as u64), digest));
        Ok(())
    }
}

/// The bytes of a version, checked against the digest the server gives with them.
pub async fn download(
    client: &Client,
    path: &PluginPath,
    version: Option<&Version>,
    channel: Option<&str>,
) -> Outcome<Vec<u8>> {
    let version = version.map(Version::to_string);
    let query = [("version", version.as_deref()), ("channel", channel)];
    let response = client.send(client.request(Method::GET, &super::verb(path, "fetch"), &query)).await?;
    let etag =
        response.headers().get(ETAG).and_then(|tag| tag.to_str().ok()).map(|tag| tag.trim_matches('"').to_owned());
    let bytes = response.bytes().await.map_err(|error| client.broken(&error))?.to_vec();
    let named: Option<Digest> = etag.and_then(|tag| tag.parse().ok());
    let actual = Digest::of(&bytes);
    match named {
        Some(named) if named == actual => Ok(bytes),
        Some(named) => Err(Failure::failed(format!("{path}: the bytes have the digest {actual}, not {named}"))
            .next("fetch again; if it stays so, the server's payload is damaged")),
        None => Err(Failure::failed(format!("{path}: the server named no digest for its bytes"))
            .next("check that --server names a noetl server")),
    }
}

/// Writes beside `file`, then renames.
pub fn write_whole(file: &Path, bytes: &[u8]) -> Outcome {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A component is no secret: it gets the rights of any new file, not those of a temporary one.
    let mut temporary = tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(failure::io("write into", folder))?;
    temporary.write_all(bytes).map_err(failure::io("write", file))?;
    temporary.persist(file).map_err(|error| failure::io("write", file)(error.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_others_can_read_it() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("x.wasm");
        std::fs::write(&file, "a longer text than the new one").expect("write");
        write_whole(&file, b"new").expect("writes");
        assert_eq!(std::fs::read(&file).expect("is there"), b"new");
        assert_ne!(std::fs::metadata(&file).expect("is there").permissions().mode() & 0o077, 0, "as the umask allows");
        assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 1, "nothing else is left");
    }
}
