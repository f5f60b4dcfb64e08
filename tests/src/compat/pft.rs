//! The patient benchmark: how many rows have to be in its tables, and how many are.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Map, Value as Json, json};

use super::follow::Run;
use super::oracle::{Failures, Oracles};
use super::stage::{Registered, Stage, World};
use super::{documents, psql};
use crate::paginated::patients::{PAGED, rows};

/// What the benchmark's own playbook says when nothing is overridden.
const FACILITIES: u64 = 10;
const PER_FACILITY: u64 = 1000;
const LONGEST: Duration = Duration::from_secs(1800);

/// Rows of one table.
pub struct Count {
    pub table: String,
    pub wanted: u64,
    pub found: Result<u64, String>,
}

impl Count {
    pub fn problem(&self) -> Option<String> {
        match &self.found {
            Ok(found) if *found == self.wanted => None,
            Ok(found) => Some(format!("{} has {found} rows and not {}", self.table, self.wanted)),
            Err(error) => Some(format!("{}: {error}", self.table)),
        }
    }
}

/// What came of a run of the benchmark.
pub struct Ran {
    pub status: String,
    pub counts: Vec<Count>,
    /// From the start of the execution to its last event.
    pub took: Duration,
    /// Everything that is not as it has to be.
    pub problems: Vec<String>,
}

/// Runs the benchmark's playbook alone.
pub async fn run(folder: &Path, file: &str, facilities: u64, per_facility: u64) -> Result<Ran, String> {
    if facilities > 1 && per_facility != PER_FACILITY {
        return Err(format!(
            "its patients are numbered by {PER_FACILITY} a facility; several facilities need that many"
        ));
    }
    let oracles = Oracles::of(folder)?;
    let mut documents = documents::read(folder)?;
    documents.retain(|document| document.file == file);
    let world = World::start(folder, &documents, &oracles).await?;
    let stage = Stage::start(&world, &documents, &oracles, Failures::Strict).await?;
    if documents.is_empty() {
        return Err(format!("{} has no {file}", folder.display()));
    }
    let path = match stage.registered(file) {
        Registered::Path(path) => path.clone(),
        Registered::Refused(problem) | Registered::NotHere(problem) => return Err(format!("{file}: {problem}")),
    };
    let payload = json!({"num_facilities": facilities, "patients_per_facility": per_facility});
    let payload = payload.as_object().cloned().unwrap_or_default();
    let started = Instant::now();
    let run = Run::of(&stage.api, &path, &payload, LONGEST).await?;
    let took = started.elapsed();
    let counts = counts(&world, patients(&payload));
    let mut problems: Vec<String> = counts.iter().filter_map(Count::problem).collect();
    if run.status != "COMPLETED" {
        problems.push(format!("{}: {}", run.status, run.why));
    }
    Ok(Ran { status: run.status, counts, took, problems })
}

/// Patients that a payload asks for.
pub(super) fn patients(payload: &Map<String, Json>) -> u64 {
    let number = |name: &str, usual: u64| payload.get(name).and_then(Json::as_u64).unwrap_or(usual);
    number("num_facilities", FACILITIES) * number("patients_per_facility", PER_FACILITY)
}

/// All tables of the benchmark. Expected are the sums of the formula that the HTTP server uses.
pub(super) fn counts(world: &World, patients: u64) -> Vec<Count> {
    let paged = PAGED.iter().map(|(kind, ..)| (format!("pft_test_patient_{kind}"), rows(patients, kind)));
    let single =
        ["pft_test_patient_demographics", "pft_test_mds_assessment_details", "pft_test_mds_assessment_ids_work"];
    let all = paged.chain(single.into_iter().map(|table| (table.to_owned(), patients)));
    all.map(|(table, wanted)| {
        let counted = psql::ask(&world.postgres, &format!("SELECT count(*) FROM public.{table}"));
        let found = counted.and_then(|text| text.parse().map_err(|_| format!("`{text}` is not a number of rows")));
        Count { table, wanted, found }
    })
    .collect()
}
