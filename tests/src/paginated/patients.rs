//! Patients and their records, by MD5: how many pages a patient has of a kind follows from the patient's number.
//!
//! `pages = least + int(md5("<patient>:<kind>"), 16) mod (most - least + 1)`. Whoever checks a run uses the same functions.

use std::fmt::Write as _;
use std::time::Duration;

use md5::{Digest as _, Md5};
use serde_json::{Value, json};

use super::lists::noise;
use super::wire::{Ask, Reply};
use super::{PATIENT_RATE, World};

/// Kinds that come in pages, with the least and the most pages of a patient.
pub const PAGED: [(&str, u64, u64); 4] =
    [("assessments", 2, 4), ("conditions", 1, 3), ("medications", 2, 3), ("vital_signs", 1, 1)];

const MOST_IN_BATCH: usize = 500;
/// Of a record of `patient-records`; the original takes seconds.
const RECORD_DELAY: f64 = 0.02;

/// `int(md5(seed), 16) mod span`.
fn spread(seed: &str, span: u64) -> u64 {
    let hash: [u8; 16] = Md5::digest(seed.as_bytes()).into();
    u64::try_from(u128::from_be_bytes(hash) % u128::from(span)).unwrap_or(0)
}

/// Pages of a kind that a patient has.
pub fn pages(patient: u64, kind: &str) -> Option<u64> {
    let (_, least, most) = PAGED.iter().find(|(name, ..)| *name == kind)?;
    Some(least + spread(&format!("{patient}:{kind}"), most - least + 1))
}

/// Rows that a run over so many patients leaves in the table of a kind.
pub fn rows(patients: u64, kind: &str) -> u64 {
    (1..=patients).map(|patient| pages(patient, kind).unwrap_or(1)).sum()
}

/// Ids of detailed assessments that one page of a patient's assessments names: 5 to 10.
fn mds_of_page(patient: u64, page: u64) -> Vec<String> {
    let count = 5 + spread(&format!("{patient}:assessments:{page}"), 6);
    (1..=count).map(|number| format!("MDS-{patient}-{page}-{number}")).collect()
}

fn record(patient: u64, kind: &str, page: u64) -> Value {
    let mut record = json!({
        "id": format!("{kind}-{patient}-{page}"), "patientId": patient, "type": kind, "page": page,
        "recordedAt": format!("2026-01-{:02}T08:00:00Z", 1 + (patient + page) % 28),
        "note": format!("patient's record {page} of {kind}"),
    });
    if kind == "assessments" {
        record["mdsAssessmentIds"] = json!(mds_of_page(patient, page));
    }
    record
}

fn demographics(patient: u64) -> Value {
    json!({"patientId": patient, "firstName": format!("First{patient}"), "lastName": format!("O'Last{patient}"),
        "birthDate": format!("19{:02}-{:02}-{:02}", 30 + patient % 60, 1 + patient % 12, 1 + patient % 28),
        "gender": if patient.is_multiple_of(2) { "female" } else { "male" }})
}

pub(super) fn of_patient(kind: &str, ask: &Ask, world: &World) -> Reply {
    if !world.admits("patient", PATIENT_RATE) {
        return Reply::error(429, "more requests a second than one clinic can answer").with("retry-after", 1);
    }
    let Some(patient) = ask.text("patientId").and_then(|text| text.trim().parse().ok()) else {
        return Reply::error(400, "patientId has to be one number");
    };
    if kind == "demographics" {
        return Reply::json(&demographics(patient));
    }
    let Some(total) = pages(patient, kind) else {
        return Reply::error(404, &format!("there are no records of the kind `{kind}`"));
    };
    let page = ask.number("page", 1);
    if page == 0 || page > total {
        return Reply::error(404, &format!("patient {patient} has {total} pages of {kind}"));
    }
    let paging = json!({"hasMore": page < total, "page": page, "pageSize": 1, "total": total});
    Reply::json(&json!({"data": [record(patient, kind, page)], "paging": paging}))
}

/// A bundle of one patient, page by page: 2 to 5 of them.
pub(super) async fn records(ask: &Ask, world: &World) -> Reply {
    let most = usize::try_from(ask.number("rate_limit", PATIENT_RATE as u64)).unwrap_or(PATIENT_RATE);
    if !world.admits("patient-records", most) {
        return Reply::error(429, "more requests a second than the registry can answer").with("retry-after", 1);
    }
    let patient = ask.text("patientId").unwrap_or("1").trim().to_owned();
    let total = 2 + spread(&patient, 4);
    let page = ask.number("page", 1);
    if page == 0 || page > total {
        return Reply::error(404, &format!("patient {patient} has {total} pages"));
    }
    let delay = ask.float("delay_seconds", ask.float("delay", RECORD_DELAY)).clamp(0.0, 30.0);
    tokio::time::sleep(Duration::from_secs_f64(delay)).await;
    let bytes = usize::try_from(ask.number("payload_kb", 100)).unwrap_or(100).min(10_000) * 1024;
    let entry = json!([{"resource": {"resourceType": "Observation", "id": format!("{patient}-{page}"),
        "subject": {"reference": format!("Patient/{patient}")}, "text": noise(page, bytes)}}]);
    Reply::json(&json!({"resourceType": "Bundle", "type": "searchset", "total": total, "entry": entry, "data": entry,
        "paging": {"hasMore": page < total, "page": page, "pageSize": ask.number("pageSize", 10), "total": total}}))
}

pub(super) fn mds_ids(ask: &Ask) -> Reply {
    let patient = ask.number("patientId", 1);
    let count = 2 + spread(&format!("{patient}:mds"), 4);
    let ids: Vec<String> = (1..=count).map(|number| format!("MDS-{patient}-{number}")).collect();
    Reply::json(&json!({"patientId": patient, "data": ids, "assessmentIds": ids, "total": count}))
}

fn mds(id: &str) -> Value {
    let sections: Vec<Value> = (1..=3)
        .map(|section| {
            let questions: Vec<Value> = (1..=3)
                .map(|question| {
                    let seed = format!("{id}:{section}:{question}");
                    json!({"id": format!("Q{section}.{question}"), "answer": spread(&seed, 5)})
                })
                .collect();
            json!({"section": format!("{}", char::from(b'A' + section)), "questions": questions})
        })
        .collect();
    json!({"assessmentId": id, "sections": sections})
}

pub(super) fn mds_detail(id: &str) -> Reply {
    Reply::json(&mds(id))
}

pub(super) fn mds_details(ask: &Ask) -> Reply {
    match ask.text("assessmentId").map(str::trim).filter(|id| !id.is_empty()) {
        None => Reply::error(400, "assessmentId is missing"),
        Some(id) if id.contains(',') => Reply::error(400, "one id at a time"),
        Some(id) => Reply::json(&json!({"data": mds(id), "assessmentId": id})),
    }
}

/// All pages of all patients of a kind, as rows. Written as text: it is what a benchmark waits for.
pub(super) fn batch(kind: &str, ask: &Ask) -> Reply {
    let listed = ask.text("patientIds").unwrap_or_default().split(',').filter(|text| !text.trim().is_empty());
    let Ok(patients) = listed.map(|text| text.trim().parse::<u64>()).collect::<Result<Vec<_>, _>>() else {
        return Reply::error(400, "patientIds are numbers with commas between them");
    };
    if patients.is_empty() || patients.len() > MOST_IN_BATCH {
        return Reply::error(400, &format!("between 1 and {MOST_IN_BATCH} patients at a time"));
    }
    let facility_size = ask.number("patientsPerFacility", 1000).max(1);
    let mut rows = Vec::new();
    for &patient in &patients {
        let facility = patient.saturating_sub(1) / facility_size + 1;
        let place = json!({"patient_id": patient, "facility_mapping_id": facility});
        match (kind, pages(patient, kind)) {
            (_, Some(total)) => rows.extend((1..=total).map(|page| {
                let rest = json!({"page_number": page, "payload": record(patient, kind, page),
                    "is_last_page": page == total});
                joined(&place, &rest)
            })),
            ("demographics", None) => rows.push(joined(&place, &json!({"payload": demographics(patient)}))),
            ("mds", None) => {
                let id = format!("MDS-{patient}-{}", pages(patient, "assessments").unwrap_or(1));
                rows.push(joined(&place, &json!({"assessment_id": id, "payload": mds(&id)})));
            }
            _ => return Reply::error(404, &format!("there are no records of the kind `{kind}`")),
        }
    }
    let mut text = String::with_capacity(rows.len() * 512);
    let head = json!({"dataType": kind, "patientCount": patients.len(), "rowCount": rows.len()}).to_string();
    // A write to a string does not fail.
    let _ = write!(text, "{},\"rows\":{}}}", head.trim_end_matches('}'), Value::Array(rows));
    Reply::text("application/json", text)
}

fn joined(left: &Value, right: &Value) -> Value {
    let fields = [left, right].into_iter().filter_map(Value::as_object).flatten();
    Value::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect())
}
