//! The real binary: start, idle memory, and the pause a caller feels while versions are swapped.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use reqwest::Client;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::host::places;
use crate::rows::{Better, Row, Rows, median};

const STARTS: usize = 9;
const SWAPS: u32 = 30;
const PATH: &str = "main/bench/versioned";

/// A folder on the disk the binary is on: the system's temporary folder may be memory.
pub fn folder() -> Result<TempDir> {
    let binary = noetl()?;
    let beside = binary.parent().context("the binary is in a folder")?;
    tempfile::tempdir_in(beside).context("make a folder")
}

pub fn noetl() -> Result<PathBuf> {
    places().remove("NOETL_BIN").context("NOETL_BIN is set by `cargo xtask bench`")
}

pub fn guest(name: &str) -> Result<Vec<u8>> {
    let folder = places().remove("NOETL_GUESTS_DIR").context("NOETL_GUESTS_DIR is set by `cargo xtask bench`")?;
    let file = folder.join("test").join(format!("{name}.wasm"));
    std::fs::read(&file).with_context(|| format!("read {}", file.display()))
}

pub fn measure(runtime: &Runtime, rows: &mut Rows) -> Result<()> {
    let folder = folder()?;
    // The first start compiles what is embedded; it is not what is measured.
    let first = Server::start(folder.path())?;
    runtime.block_on(first.ready())?;
    drop(first);
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        let started = Instant::now();
        let server = Server::start(folder.path())?;
        runtime.block_on(server.ready())?;
        starts.push(started.elapsed().as_secs_f64() * 1e3);
    }
    let mut row = Row::new(median(starts), "ms", Better::Lower);
    (row.floor, row.goal) = (Some(500.0), Some(100.0));
    rows.add("server start to first answer, warm cache", row);
    let server = Server::start(folder.path())?;
    runtime.block_on(server.ready())?;
    let mut row = Row::new(server.resident_mib()?, "MiB", Better::Lower);
    (row.floor, row.goal) = (Some(120.0), Some(40.0));
    rows.add("memory, idle", row);
    runtime.block_on(swaps(&server, rows))
}

/// Calls one after another while versions are swapped; a swap's pause is how much longer than usual the
/// calls took that met one.
async fn swaps(server: &Server, rows: &mut Rows) -> Result<()> {
    let base = guest("versioned")?;
    let pusher = client()?;
    push(&pusher, server, version(&base, 0)?).await?;
    let swapping = Arc::new(AtomicBool::new(true));
    let (url, token, running) = (server.url.clone(), server.token.clone(), swapping.clone());
    let caller = tokio::spawn(async move {
        let client = client()?;
        let mut seen: Vec<(String, Duration)> = Vec::new();
        let mut failed = 0_u32;
        while running.load(Ordering::SeqCst) {
            let started = Instant::now();
            let answer =
                client.post(format!("{url}/api/plugins/{PATH}:call")).bearer_auth(&token).body("x").send().await?;
            let version = answer
                .headers()
                .get("noetl-plugin-version")
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
                .to_owned();
            failed += u32::from(!answer.status().is_success());
            answer.bytes().await?;
            seen.push((version, started.elapsed()));
        }
        anyhow::Ok((seen, failed))
    });
    for number in 1..=SWAPS {
        push(&pusher, server, version(&base, number)?).await?;
        // Let calls meet the new version before the next one comes: a few answers of it.
        for _ in 0..20 {
            let call =
                pusher.post(format!("{}/api/plugins/{PATH}:call", server.url)).bearer_auth(&server.token).body("x");
            call.send().await?.error_for_status()?;
        }
    }
    swapping.store(false, Ordering::SeqCst);
    let (seen, failed) = caller.await??;
    let usual = median(seen.iter().map(|(_, took)| took.as_secs_f64() * 1e3));
    let mut pauses: Vec<f64> = seen
        .windows(2)
        .filter(|pair| pair[0].0 != pair[1].0)
        .map(|pair| (pair[1].1.as_secs_f64() * 1e3 - usual).max(0.0))
        .collect();
    pauses.sort_by(f64::total_cmp);
    let Some(longest) = pauses.last() else { bail!("no swap was seen by the caller") };
    let mut row = Row::new(*longest, "ms", Better::Lower);
    (row.goal, row.baseline) = (Some(1.0), Some(usual));
    rows.add(format!("swap pause, longest of {} swaps", pauses.len()), row);
    let mut row = Row::new(f64::from(failed), "calls", Better::Lower);
    (row.floor, row.goal) = (Some(0.0), Some(0.0));
    rows.add(format!("calls failed of {} during {SWAPS} swaps", seen.len()), row);
    Ok(())
}

pub fn client() -> Result<Client> {
    // Fails only when a provider is there already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Ok(Client::builder().no_proxy().build()?)
}

pub async fn push(client: &Client, server: &Server, component: Vec<u8>) -> Result<()> {
    let answer =
        client.post(format!("{}/api/plugins", server.url)).bearer_auth(&server.token).body(component).send().await?;
    if !answer.status().is_success() {
        bail!("the push was refused: {}", answer.text().await?);
    }
    Ok(())
}

/// The guest under our path, with its number in marker and version.
fn version(base: &[u8], number: u32) -> Result<Vec<u8>> {
    const MARKER: &[u8] = b"NOETL-MARKER-000000";
    let at = base.windows(MARKER.len()).position(|window| window == MARKER).context("the guest has a marker")?;
    let mut changed = base.to_vec();
    changed[at..at + MARKER.len()].copy_from_slice(format!("NOETL-MARKER-{number:06}").as_bytes());
    let manifest = format!("path = \"{PATH}\"\nversion = \"1.0.{number}\"\nworld = \"transform\"\n");
    Ok(noetl_contract::manifest::replace(&changed, &manifest)?)
}

/// A running server; killed when dropped.
pub struct Server {
    child: Child,
    pub url: String,
    pub token: String,
}

impl Server {
    pub fn start(data: &Path) -> Result<Self> {
        Self::start_with(data, &[])
    }

    /// With variables of the environment, such as `NOETL_POLICY_HTTP_PRIVATE_ADDRESSES`.
    pub fn start_with(data: &Path, environment: &[(&str, &str)]) -> Result<Self> {
        let mut child = Command::new(noetl()?)
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("start the server")?;
        let stderr = child.stderr.take().context("stderr is piped")?;
        let mut lines = BufReader::new(stderr).lines();
        let url = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| Some(line.split("listening on ").nth(1)?.trim().to_owned()));
        let url = url.context("the server ended without listening")?;
        // What it says later must go somewhere, or it would block.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let token = std::fs::read_to_string(data.join("admin.token")).context("read the token")?.trim().to_owned();
        Ok(Self { child, url, token })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub async fn ready(&self) -> Result<()> {
        let client = client()?;
        while !client.get(format!("{}/ready", self.url)).send().await?.status().is_success() {
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    pub fn resident_mib(&self) -> Result<f64> {
        self.memory_mib("VmRSS:")
    }

    /// The most it ever had.
    pub fn peak_mib(&self) -> Result<f64> {
        self.memory_mib("VmHWM:")
    }

    fn memory_mib(&self, what: &str) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|line| line.starts_with(what)).context("every process has it")?;
        let kib: f64 = line.split_whitespace().nth(1).context("a number")?.parse()?;
        Ok(kib / 1024.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
