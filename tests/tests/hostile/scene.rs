//! An attacker, a bystander, and a server between them.

use std::future::Future;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use noetl_tests::bystander::{Bystander, Errand, report, row};
use noetl_tests::{Answer, Api, Server, guest, with_manifest};
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};

/// Calls of the bystander before an attack, and at least that many during one.
const SAMPLES: usize = 60;
/// Path of the guest that attacks.
pub const HOSTILE: &str = "mallory/hostile";
const ECHO: &str = "alice/echo";

/// Attacks are measured one at a time: two at once would be each other's noise.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

pub struct Scene {
    pub server: Server,
    /// The attacker: a tenant's token with all that a tenant can have.
    pub mallory: Api,
    /// Another tenant.
    pub alice: Api,
    _alone: MutexGuard<'static, ()>,
}

impl Scene {
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    pub async fn start_with(environment: &[(&str, &str)]) -> Self {
        Self::start_in(environment, |server| server).await
    }

    /// On a machine that is not quite this one: `inside` makes the command that starts the server there.
    pub async fn start_in(environment: &[(&str, &str)], inside: impl FnOnce(Command) -> Command) -> Self {
        let alone = ONE_AT_A_TIME.lock().await;
        let folder = Arc::new(TempDir::new().expect("a temporary folder"));
        let server = Server::start_by(inside(Server::command(folder.path(), environment)), folder);
        let admin = server.admin();
        // Until then the built-in components are being compiled, which would be measured too.
        while admin.get("/ready").await.status != 200 {}
        let of = async |tenant: &str| server.with_token(&admin.token_for(tenant, "tenant").await);
        let (mallory, alice) = (of("mallory").await, of("alice").await);
        let manifest = format!("path = \"{ECHO}\"\nversion = \"1.0.0\"\nworld = \"transform\"\ncapabilities = []\n");
        alice.push(with_manifest(&guest("echo"), &manifest), "").await.is(201);
        Self { server, mallory, alice, _alone: alone }
    }

    /// With the guest that attacks pushed.
    pub async fn with_guest() -> Self {
        let scene = Self::start().await;
        scene.mallory.push(guest("hostile"), "").await.is(201);
        scene
    }

    /// A call of the attacking guest that must end with this status and code; says so for the table.
    pub async fn call(&self, input: &str, status: u16, code: &str) -> String {
        ended(self.mallory.call(HOSTILE, input).await, status, code)
    }

    /// Runs an attack, over and over until the bystander has made enough calls, and writes down its row. `attack` says
    /// in which class it ended. Gives the number of calls the bystander was answered meanwhile.
    pub async fn attack<F: Future<Output = String>>(&self, name: &str, mut attack: impl FnMut() -> F) -> usize {
        let text = "a bystander".to_owned();
        let errand = Errand { path: ECHO, input: text.clone(), answer: text, samples: SAMPLES };
        let before = Bystander::start(&self.alice, &errand);
        before.enough().await;
        let before = before.stop().await;
        let during = Bystander::start(&self.alice, &errand);
        let began = Instant::now();
        let class = attack().await;
        let contained = began.elapsed();
        while !during.has_enough() {
            attack().await;
            // One that waits for nothing must not keep the bystander from its call.
            tokio::task::yield_now().await;
        }
        let during = during.stop().await;
        assert_eq!(self.alice.call(ECHO, "still here").await.is(200).text(), "still here");
        self.server.admin().get("/health").await.is(200);
        report(&row(name, &class, contained, &before, &during));
        during.len()
    }
}

/// The code of a problem that is expected, for the table.
pub fn ended(answer: Answer, status: u16, code: &str) -> String {
    answer.problem(status, code);
    code.to_owned()
}
