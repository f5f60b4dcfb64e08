//! A folder of playbooks, run on a private server and held against what has to come of each.
//!
//! Everything a playbook of the suite reaches is here: a Postgres, a NATS, the HTTP server of [`crate::paginated`]. The
//! credentials, buckets and streams are those that the documents themselves name; hosts that stand for the outside are
//! replaced in their text. What is to be expected is data ([`oracle`]): nothing here or in the product knows a playbook by
//! its name.
//!
//! A playbook nobody says anything about has to complete. Where it only does when failures of steps are passed over, which
//! is how the suite's own engine runs it, that is told beside it: the run is made again on a server that is lenient. One that
//! fails is run once more after all others, because the files of a folder have no order and some make what others need.

mod documents;
mod follow;
mod hosts;
mod judge;
pub mod oracle;
pub mod pft;
mod psql;
mod stage;
mod table;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use documents::Document;
use follow::Run;
use oracle::{Failures, Oracle, Oracles};
use stage::{Registered, Stage, World};
pub use table::{Report, Row, Verdict};

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    pub folder: PathBuf,
    /// Only playbooks whose file or path has this in it.
    pub only: Option<String>,
    /// Over what the oracle gives as payload.
    pub facilities: Option<u64>,
    pub patients: Option<u64>,
    /// Leaves the servers running, and says where, until it is interrupted.
    pub keep: bool,
}

impl Options {
    pub fn of(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), only: None, facilities: None, patients: None, keep: false }
    }
}

/// The playbooks that come with the project.
pub fn own_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("playbooks-compat")
}

/// The suite's playbooks, where they are beside the checkout.
pub fn suite_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/fixtures/noetl-e2e")
}

/// Runs a folder. The error is about the folder or its oracles; what becomes of playbooks is in the report.
pub async fn run(options: &Options) -> Result<Report, String> {
    let oracles = Oracles::of(&options.folder)?;
    let documents = documents::read(&options.folder)?;
    if documents.is_empty() {
        return Err(format!("{} has no playbooks", options.folder.display()));
    }
    let world = World::start(&options.folder, &documents, &oracles).await?;
    let strict = Stage::start(&world, &documents, &oracles, Failures::Strict).await?;
    let mut suite = Suite { options, oracles: &oracles, world: &world, documents: &documents, strict, lenient: None };
    let mut report = Report::default();
    for document in &documents {
        if suite.is_wanted(document) || suite.is_started_by_wanted(document) {
            let row = suite.row(document).await?;
            eprintln!("{row}");
            report.rows.push(row);
        }
    }
    for row in report.rows.iter_mut().filter(|row| row.verdict == Verdict::Failed) {
        // What it needs may have been made by one that came after it.
        let document = documents.iter().find(|document| document.file == row.file);
        let Some(document) = document.filter(|_| row.status != "REJECTED") else { continue };
        let again = suite.row(document).await?;
        eprintln!("{again}");
        if again.verdict == Verdict::Passed {
            *row = Row { why: format!("after all others; before: {}", row.why), ..again };
        }
    }
    if options.keep {
        eprintln!("{}", suite.whereabouts());
        // Until somebody ends it.
        let _ = tokio::signal::ctrl_c().await;
    }
    Ok(report)
}

struct Suite<'a> {
    options: &'a Options,
    oracles: &'a Oracles,
    world: &'a World,
    documents: &'a [Document],
    strict: Stage,
    /// Started when something first needs it.
    lenient: Option<Stage>,
}

impl Suite<'_> {
    fn is_wanted(&self, document: &Document) -> bool {
        let Some(only) = &self.options.only else { return true };
        document.file.contains(only.as_str()) || document.path().is_some_and(|path| path.contains(only.as_str()))
    }

    /// What another playbook starts may be what makes the tables that the other one uses.
    fn is_started_by_wanted(&self, document: &Document) -> bool {
        let Some(path) = document.path() else { return false };
        self.documents
            .iter()
            .filter(|other| self.is_wanted(other))
            .any(|other| other.children().iter().any(|c| c == path))
    }

    async fn stage(&mut self, failures: Failures) -> Result<&Stage, String> {
        if failures == Failures::Strict {
            return Ok(&self.strict);
        }
        if self.lenient.is_none() {
            let stage = Stage::start(self.world, self.documents, self.oracles, failures).await?;
            self.lenient = Some(stage);
        }
        Ok(self.lenient.as_ref().expect("it was just made"))
    }

    async fn row(&mut self, document: &Document) -> Result<Row, String> {
        let started = Instant::now();
        let oracle = self.oracles.for_file(&document.file);
        let mut row = Row::of(&document.file, oracle.is_some());
        let registered = self.strict.registered(&document.file);
        let expected = oracle.cloned().unwrap_or_default();
        let found = match registered {
            Registered::Refused(problem) if expected.rejected => Found::new(Verdict::Passed, "REJECTED", problem),
            Registered::Refused(problem) => Found::new(Verdict::Failed, "REJECTED", problem),
            _ if expected.rejected => Found::new(Verdict::Failed, "accepted", "it has to be refused"),
            Registered::NotHere(reason) => Found::new(Verdict::NotHere, "-", reason),
            Registered::Path(path) => {
                let path = path.clone();
                self.run(&path, &expected, oracle.is_some()).await?
            }
        };
        row.take(found, started.elapsed());
        Ok(row)
    }

    async fn run(&mut self, path: &str, oracle: &Oracle, told: bool) -> Result<Found, String> {
        let first = self.once(path, oracle, oracle.failures).await?;
        if first.verdict == Verdict::Passed || told || first.status != "FAILED" {
            return Ok(first);
        }
        // A module of somebody else is something that is not here, as a tool would be.
        if let Some(module) = self.oracles.absent_module(&first.why) {
            return Ok(Found::new(Verdict::NotHere, "FAILED", format!("the Python module {module}")));
        }
        let again = self.once(path, oracle, Failures::Lenient).await?;
        if again.verdict != Verdict::Passed {
            return Ok(first);
        }
        Ok(Found { why: format!("lenient; strict: {}", first.why), ..again })
    }

    async fn once(&mut self, path: &str, oracle: &Oracle, failures: Failures) -> Result<Found, String> {
        self.world.http.reset();
        let payload = oracle.payload_with(self.options.facilities, self.options.patients);
        let limit = Duration::from_secs(oracle.timeout_secs);
        let api = self.stage(failures).await?.api.clone();
        let run = Run::of(&api, path, &payload, limit).await?;
        let problems = judge::problems(oracle, &run, (self.world, &api), &payload).await;
        Ok(match problems.is_empty() {
            true => Found::new(Verdict::Passed, &run.status, ""),
            false => Found::new(Verdict::Failed, &run.status, problems.join("; ")),
        })
    }

    fn whereabouts(&self) -> String {
        let (postgres, nats) = (&self.world.postgres, &self.world.nats);
        format!(
            "server   {}  token {}\nhttp     {}\npostgres postgresql://{}:{}@{}:{}/{}\nnats     {}  {} {}\nctrl-c ends them",
            self.strict.server.url,
            self.strict.server.admin_token(),
            self.world.http.url,
            postgres.user,
            postgres.password,
            postgres.host,
            postgres.port,
            postgres.database,
            nats.url(),
            nats.user,
            nats.password,
        )
    }
}

/// What came of a playbook.
struct Found {
    verdict: Verdict,
    status: String,
    why: String,
}

impl Found {
    fn new(verdict: Verdict, status: &str, why: impl Into<String>) -> Self {
        Self { verdict, status: status.to_owned(), why: why.into() }
    }
}
