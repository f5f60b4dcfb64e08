//! kill -9 while playbooks run: executions go on by themselves, each ends once, nothing is asked of the outside after
//! its success was recorded, and the tables are what a rebuild makes of the log.

use std::process::Command;
use std::sync::Arc;

use noetl_tests::load::{all_ended, check_execution, events, finish, register, start};
use noetl_tests::{Outside, Server, noetl_bin};
use tempfile::TempDir;

const ENVIRONMENT: [(&str, &str); 1] = [("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")];
const EXECUTIONS: u32 = 500;
const AT_ONCE: usize = 8;

/// The same moments every run, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as u32 % bound
    }
}

fn kills() -> u32 {
    if std::env::var_os("NOETL_TEST_LONG").is_some() { 200 } else { 20 }
}

fn verify(folder: &TempDir) {
    let verified =
        Command::new(noetl_bin()).args(["log", "verify", "--data"]).arg(folder.path()).output().expect("runs");
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn executions_survive_kills_at_any_moment() {
    let outside = Arc::new(Outside::start().await);
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let mut next = 0;
    for kill in 0..kills() {
        let mut server = Server::start_on(folder.clone(), &ENVIRONMENT);
        let api = server.admin();
        register(&api).await;
        // As many as are left for each kill, so that every one of them meets executions of every age.
        let upto = EXECUTIONS * (kill + 1) / kills();
        let starting = tokio::spawn({
            let outside = outside.clone();
            let first = next;
            async move {
                for number in (first..upto).step_by(AT_ONCE) {
                    let some = (number..upto.min(number + AT_ONCE as u32)).map(|number| start(&api, &outside, number));
                    if futures::future::join_all(some).await.contains(&None) {
                        return;
                    }
                }
            }
        });
        let asked = outside.seen().len() + random.below(30) as usize;
        let spins = random.below(50_000);
        let mut spun = 0;
        while spun < spins || (outside.seen().len() < asked && !starting.is_finished()) {
            spun += 1;
            tokio::task::yield_now().await;
        }
        server.kill();
        starting.await.unwrap_or_else(|error| panic!("kill {kill}: {error}"));
        drop(server);
        verify(&folder);
        // What was not acknowledged is asked for again, and what was is known by its key.
        next = upto.saturating_sub(50);
    }
    let server = Server::start_on(folder.clone(), &ENVIRONMENT);
    let api = server.admin();
    let mut roots = Vec::new();
    for number in 0..EXECUTIONS {
        roots.push(finish(&api, &outside, number).await);
    }
    let ended = all_ended(&api).await;
    let seen = outside.seen();
    for root in &roots {
        assert_eq!(ended.get(root).map(String::as_str), Some("COMPLETED"), "{root}");
    }
    for execution in ended.keys() {
        check_execution(execution, &events(&api, execution).await, &seen);
    }
    let again: usize = seen.values().filter(|times| times.len() > 1).count();
    let (folder, _) = server.stop();
    verify(&folder);
    let tables = folder.path().join("projections.sqlite");
    assert!(tables.is_file(), "the tables are where the test looks for them");
    for file in std::fs::read_dir(folder.path()).expect("the folder").flatten() {
        if file.file_name().to_string_lossy().starts_with("projections.sqlite") {
            std::fs::remove_file(file.path()).expect("removed");
        }
    }
    let server = Server::start_on(folder, &ENVIRONMENT);
    assert_eq!(all_ended(&server.admin()).await, ended, "the tables are not what the log makes of them");
    println!(
        "{} kills, {} executions, {} requests, {again} of {} keys asked more than once, none after its success",
        kills(),
        ended.len(),
        seen.values().map(Vec::len).sum::<usize>(),
        seen.len()
    );
}
