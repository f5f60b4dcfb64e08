//! An HTTP request in a step beside the same request by a bare client that keeps its connections.

use anyhow::{Result, ensure};
use reqwest::Client;
use serde_json::{Value, json};

use super::stand::{IN_FLIGHT, REPEATED, Stand};
use super::turns::{self, Bare};
use super::upstream::{SMALL, Upstream};
use crate::rows::Rows;
use crate::server;

pub async fn measure(stand: &Stand, upstream: &Upstream, rows: &mut Rows) -> Result<()> {
    let url = format!("{}/small", upstream.url);
    let tool = json!({"kind": "http", "url": url});
    let bare = Requests { client: server::client()?, url, answer: serde_json::from_str(SMALL)? };

    let one = stand.step("http", &tool, "/data", bare.answer.clone()).await?;
    let row = turns::single(stand, &one, &bare).await?;
    rows.add("http step, a playbook of one; baseline: bare reqwest", row);

    let many = stand.repeated("http", &tool).await?;
    let row = turns::repeated(stand, &many, &bare, IN_FLIGHT).await?;
    rows.add(format!("{REPEATED} http steps, a parallel loop; baseline: bare reqwest, {IN_FLIGHT} at a time"), row);
    Ok(())
}

struct Requests {
    client: Client,
    url: String,
    answer: Value,
}

impl Bare for Requests {
    async fn turn(&self) -> Result<()> {
        let answer: Value = self.client.get(&self.url).send().await?.error_for_status()?.json().await?;
        ensure!(answer == self.answer, "{} answered {answer} instead of {}", self.url, self.answer);
        Ok(())
    }
}
