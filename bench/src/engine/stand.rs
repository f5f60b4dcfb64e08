//! A server with the bench's playbooks, and what can be asked about it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

use super::http::{JSON, Target};
use super::load;
use super::playbooks::Playbook;
use crate::server::{self, Server};

/// Lengths of the playbooks whose cost per step is compared.
pub const LENGTHS: [u64; 3] = [10, 100, 1_000];
/// Executions started by one request.
const BATCH: u32 = 1_000;
const WARM_UP: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// What takes longer than this does not happen any more.
const PATIENCE: Duration = Duration::from_secs(600);

pub struct Stand {
    pub server: Server,
    pub target: Arc<Target>,
    /// Goes after the server that uses it.
    _folder: TempDir,
}

impl Stand {
    pub async fn start() -> Result<Self> {
        let folder = server::folder()?;
        // The first start compiles what is embedded; what is measured is a server that need not.
        let first = Server::start(folder.path())?;
        first.ready().await?;
        drop(first);
        let server = Server::start(folder.path())?;
        server.ready().await?;
        let target = Arc::new(Target::of(&server)?);
        Ok(Self { server, target, _folder: folder })
    }

    /// Registers the playbooks and runs one for a while, so that nothing is used for the first time later.
    pub async fn prepare(&self) -> Result<()> {
        let mirror = server::guest("mirror")?;
        self.target.must(&self.target.post("/api/plugins", "application/wasm", &mirror)).await.context("push")?;
        let mut playbooks = vec![Playbook::pure(1), Playbook::acting(10), Playbook::parked()];
        playbooks.extend(LENGTHS.map(Playbook::pure));
        for playbook in playbooks {
            let request = self.target.post("/api/catalog/register", "text/yaml", playbook.text.as_bytes());
            self.target.must(&request).await.with_context(|| format!("register {}", playbook.path))?;
        }
        load::callers(&self.target, &Playbook::pure(10), 20, WARM_UP).await?;
        self.settled().await
    }

    /// Waits until the tables have everything that is in the log, so that no earlier work is counted with later.
    pub async fn settled(&self) -> Result<()> {
        let request = self.target.get("/api/executions?limit=1&consistency=strong");
        let began = Instant::now();
        loop {
            let (status, body) = self.target.ask(&request).await?;
            match status {
                200 => return Ok(()),
                // It waits for some seconds only.
                503 => ensure!(began.elapsed() < PATIENCE, "the tables do not catch up with the log"),
                _ => bail!("the list of executions: {status} {}", String::from_utf8_lossy(&body)),
            }
        }
    }

    pub async fn metrics(&self) -> Result<Metrics> {
        let text = self.target.must(&self.target.get("/metrics")).await?;
        Ok(Metrics(String::from_utf8(text).context("metrics are text")?))
    }

    /// Starts so many executions, and answers with their ids.
    pub async fn start_many(&self, playbook: &Playbook, count: u32) -> Result<Vec<String>> {
        let (mut ids, mut left, began) = (Vec::new(), count, Instant::now());
        while left > 0 {
            let size = left.min(BATCH);
            left -= size;
            let items: Vec<String> = (0..size).map(|n| playbook.request(n.into())).collect();
            let body = format!("{{\"executions\":[{}]}}", items.join(","));
            let answer = self.target.must(&self.target.post("/api/execute/batch", JSON, body.as_bytes())).await?;
            let answer: Value = serde_json::from_slice(&answer).context("the answer to a batch")?;
            let results = answer["results"].as_array().context("the results of a batch")?;
            let started = results.iter().filter_map(|result| result["execution_id"].as_str().map(str::to_owned));
            let before = ids.len();
            ids.extend(started);
            let refused = size - (ids.len() - before) as u32;
            if refused > 0 {
                // A server that has too much to do says so; it is asked again when it has done some of it.
                ensure!(began.elapsed() < PATIENCE, "{} of {count} executions were started", ids.len());
                left += refused;
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
        Ok(ids)
    }

    /// Waits until so many executions are live.
    pub async fn until_live(&self, count: u32) -> Result<()> {
        let began = Instant::now();
        loop {
            let live = self.metrics().await?.sum("noetl_executions_live");
            if live == f64::from(count) {
                return Ok(());
            }
            ensure!(began.elapsed() < PATIENCE, "{live} executions are live and not {count}");
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

/// All metrics at one moment, in the OpenMetrics text format.
pub struct Metrics(String);

impl Metrics {
    /// A series, or the sum of all series of the name, whatever their labels are; 0 when there is none.
    pub fn sum(&self, name: &str) -> f64 {
        let values = self.0.lines().filter_map(|line| {
            let rest = line.strip_prefix(name)?;
            let value = rest.starts_with([' ', '{']).then(|| rest.split_whitespace().next_back())??;
            value.parse::<f64>().ok()
        });
        values.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_of_a_name_are_added_up_and_others_left_out() {
        let metrics = Metrics(
            "# TYPE noetl_executions_live gauge\n\
             noetl_executions_live{shard=\"0\"} 3\n\
             noetl_executions_live{shard=\"1\"} 4\n\
             noetl_executions_live_more 100\n\
             noetl_engine_drive_seconds_sum 0.25\n\
             noetl_executions_ended_total{status=\"completed\"} 5\n\
             noetl_executions_ended_total{status=\"failed\"} 1\n"
                .to_owned(),
        );
        assert_eq!(metrics.sum("noetl_executions_live"), 7.0);
        assert_eq!(metrics.sum("noetl_engine_drive_seconds_sum"), 0.25);
        assert_eq!(metrics.sum("noetl_executions_ended_total"), 6.0);
        assert_eq!(metrics.sum("noetl_executions_ended_total{status=\"completed\"}"), 5.0);
        assert_eq!(metrics.sum("noetl_nothing"), 0.0);
    }
}
