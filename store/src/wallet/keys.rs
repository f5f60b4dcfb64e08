//! The keys that wrap the keys of records, and where they come from.
//!
//! A key is 32 bytes. Its name (`kid`) is made of a hash of it, so a wrong key is known by its name before anything is
//! tried, and nobody has to keep names and keys together. Of several keys the first one seals and all of them open: that is
//! how one follows another without a moment in which something cannot be opened.
//!
//! There is no default key. A key is made only where no record could need another one, and only as a file: a key that came
//! from the environment or from a command is its owner's to change.
//!
//! Crash: the file is replaced whole, and never before what it is to open is in it.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom as _, SystemRandom};
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use zeroize::Zeroizing;

use crate::folder::sync_folder;

pub const KEY_BYTES: usize = 32;
/// Far more than the keys of any rotation.
const LARGEST: u64 = 64 << 10;
/// How long a command may take to print the keys.
const COMMAND_TIME: Duration = Duration::from_secs(30);

/// Where the keys are.
#[derive(Clone)]
pub enum KeySource {
    /// A file for its owner alone; made when it is missing and nothing needs it.
    File(PathBuf),
    /// What the operator gave the server when it started.
    Given(Zeroizing<String>),
    /// A command of the operator's, run by the shell, that prints them.
    Command(String),
}

impl std::fmt::Debug for KeySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl KeySource {
    pub fn name(&self) -> &'static str {
        match self {
            KeySource::File(_) => "file",
            KeySource::Given(_) => "environment",
            KeySource::Command(_) => "command",
        }
    }

    /// Where to look, for messages.
    pub fn place(&self) -> String {
        match self {
            KeySource::File(file) => file.display().to_string(),
            KeySource::Given(_) => "`wallet.encryption_key` (NOETL_ENCRYPTION_KEY)".to_owned(),
            KeySource::Command(_) => "the command of `wallet.key_command`".to_owned(),
        }
    }

    /// The keys as they are now; nothing when there is no file.
    pub async fn read(&self) -> Result<Option<Keyring>, KeyError> {
        let text = match self {
            KeySource::File(file) => match read_file(file)? {
                Some(text) => text,
                None => return Ok(None),
            },
            KeySource::Given(text) => text.clone(),
            KeySource::Command(line) => ask(line).await?,
        };
        Keyring::parse(&text).map(Some).map_err(|problem| KeyError::Form { place: self.place(), problem })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("the key of the wallet in {} can be read by others, so it may have been copied: `chmod 600` it, and then give the wallet another key with `noetl credential rotate --kek`", .0.display())]
    Open(PathBuf),
    #[error("the key of the wallet in {} cannot be read or written: {error}", .file.display())]
    File { file: PathBuf, error: io::Error },
    #[error("`wallet.key_command` gave no key: {0}")]
    Command(String),
    #[error(
        "{place} is not a key of the wallet: {problem}; a key is 32 random bytes in base64, such as `openssl rand -base64 32` prints"
    )]
    Form { place: String, problem: &'static str },
    #[error("the system has no randomness to make a key from")]
    NoRandomness,
}

/// One key. Its bytes are overwritten when it is dropped.
#[derive(Clone)]
pub struct Kek {
    kid: String,
    bytes: Zeroizing<[u8; KEY_BYTES]>,
}

impl Kek {
    fn new(bytes: Zeroizing<[u8; KEY_BYTES]>) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"noetl wallet kid 1");
        hash.update(&bytes[..]);
        Self { kid: hex::encode(&hash.finalize()[..8]), bytes }
    }

    fn generate() -> Result<Self, KeyError> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        SystemRandom::new().fill(&mut bytes[..]).map_err(|_| KeyError::NoRandomness)?;
        Ok(Self::new(bytes))
    }

    pub fn kid(&self) -> &str {
        &self.kid
    }

    pub(super) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.bytes
    }
}

/// Keys, of which the first one seals. There is always one.
#[derive(Clone)]
pub struct Keyring(Vec<Kek>);

impl Keyring {
    pub fn generate() -> Result<Self, KeyError> {
        Ok(Self(vec![Kek::generate()?]))
    }

    /// Keys in base64, with blanks, line ends or commas between them; a line that starts with `#` is a comment.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let mut keys: Vec<Kek> = Vec::new();
        let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
        for word in lines.flat_map(|line| line.split([',', ' ', '\t'])).filter(|word| !word.is_empty()) {
            let decoded = Zeroizing::new(STANDARD.decode(word).map_err(|_| "it is not base64")?);
            let mut bytes = Zeroizing::new([0; KEY_BYTES]);
            if decoded.len() != KEY_BYTES {
                return Err("it has not 32 bytes");
            }
            bytes.copy_from_slice(&decoded);
            let key = Kek::new(bytes);
            if key.bytes.iter().all(|byte| *byte == key.bytes[0]) {
                return Err("all of its bytes are the same");
            }
            if !keys.iter().any(|known| known.kid == key.kid) {
                keys.push(key);
            }
        }
        if keys.is_empty() { Err("there is nothing in it") } else { Ok(Self(keys)) }
    }

    /// The one that seals.
    pub fn first(&self) -> &Kek {
        &self.0[0]
    }

    pub fn get(&self, kid: &str) -> Option<&Kek> {
        self.0.iter().find(|key| key.kid == kid)
    }

    pub fn kids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(Kek::kid)
    }

    /// A new key before those that are there.
    pub fn with_new(&self) -> Result<Self, KeyError> {
        let mut keys = vec![Kek::generate()?];
        keys.extend(self.0.iter().cloned());
        Ok(Self(keys))
    }

    /// Without the keys that only opened.
    pub fn only_first(&self) -> Self {
        Self(vec![self.first().clone()])
    }

    /// Replaces the file, for its owner alone.
    pub fn write(&self, file: &Path) -> Result<(), KeyError> {
        let failed = |error| KeyError::File { file: file.to_owned(), error };
        let mut text = Zeroizing::new(
            "# Keys of the wallet: the first one seals, all of them open. Keep a copy apart from the data folder.\n"
                .to_owned(),
        );
        for key in &self.0 {
            text.push_str(&Zeroizing::new(STANDARD.encode(&key.bytes[..])));
            text.push('\n');
        }
        replace(file, text.as_bytes()).map_err(failed)
    }
}

/// The text of the file; nothing when there is none. One that others can read is refused.
fn read_file(path: &Path) -> Result<Option<Zeroizing<String>>, KeyError> {
    let failed = |error| KeyError::File { file: path.to_owned(), error };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let about = file.metadata().map_err(failed)?;
    if about.permissions().mode() & 0o077 != 0 {
        return Err(KeyError::Open(path.to_owned()));
    }
    let mut text = Zeroizing::new(String::new());
    file.take(LARGEST).read_to_string(&mut text).map_err(failed)?;
    Ok(Some(text))
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let beside = PathBuf::from(name);
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&beside, path)?;
    sync_folder(path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")))
}

/// What the command prints. What it says on stderr goes to the server's own, where its owner looks for it.
async fn ask(line: &str) -> Result<Zeroizing<String>, KeyError> {
    let failed = |error: io::Error| KeyError::Command(error.to_string());
    let mut child = Command::new("sh")
        .args(["-c", line])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    let stdout = child.stdout.take().expect("stdout is piped");
    let mut text = Zeroizing::new(String::new());
    let run = async {
        stdout.take(LARGEST).read_to_string(&mut text).await?;
        child.wait().await
    };
    let ended = tokio::time::timeout(COMMAND_TIME, run)
        .await
        .map_err(|_| KeyError::Command(format!("it did not end within {} s", COMMAND_TIME.as_secs())))?;
    let status = ended.map_err(failed)?;
    if status.success() { Ok(text) } else { Err(KeyError::Command(format!("it ended with {status}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kids(keys: &Keyring) -> Vec<String> {
        keys.kids().map(str::to_owned).collect()
    }

    async fn refused(source: &KeySource) -> String {
        match source.read().await {
            Ok(_) => panic!("{} was taken", source.place()),
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn a_file_holds_keys_in_their_order_and_is_its_owners_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("wallet.key");
        let source = KeySource::File(file.clone());
        assert!(source.read().await.expect("readable").is_none());
        let keys = Keyring::generate().and_then(|keys| keys.with_new()).expect("randomness");
        keys.write(&file).expect("written");
        assert_eq!(kids(&source.read().await.expect("readable").expect("there")), kids(&keys));
        assert_eq!(std::fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
        keys.only_first().write(&file).expect("written again");
        assert_eq!(kids(&source.read().await.expect("readable").expect("there")), [keys.first().kid()]);
        for mode in [0o640, 0o604, 0o644] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("chmod");
            assert!(refused(&source).await.contains("can be read by others"), "{mode:o}");
        }
    }

    #[tokio::test]
    async fn what_is_no_key_is_refused_and_not_repeated() {
        let zeros = STANDARD.encode([0; 32]);
        for bad in ["", "# nothing", "hunter2", "aHVudGVyMg==", &zeros] {
            let said = refused(&KeySource::Given(Zeroizing::new(bad.to_owned()))).await;
            assert!(said.contains("NOETL_ENCRYPTION_KEY") && said.contains("openssl rand -base64 32"), "{said}");
            assert!(bad.len() < 5 || bad.starts_with('#') || !said.contains(bad), "{said}");
        }
    }

    #[tokio::test]
    async fn a_command_prints_the_keys_or_says_why_not() {
        let key = STANDARD.encode((0..32).collect::<Vec<u8>>());
        let source = KeySource::Command(format!("echo {key}"));
        let given = KeySource::Given(Zeroizing::new(format!("{key},{key}")));
        let keys = source.read().await.expect("ran").expect("a key");
        assert_eq!(kids(&keys), kids(&given.read().await.expect("read").expect("a key")));
        assert!(refused(&KeySource::Command("exit 3".to_owned())).await.contains("3"));
        assert!(refused(&KeySource::Command("true".to_owned())).await.contains("nothing in it"));
    }
}
