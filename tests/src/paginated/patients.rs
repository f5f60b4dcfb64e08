//! Patients and their records, by MD5: how many pages a patient has of a kind follows from the patient's number.
//!
//! `pages = least + int(md5("<patient>:<kind>"), 16) mod (most - least + 1)`. Whoever checks a run uses the same functions.

use std::fmt::{Display, Write as _};
use std::time::Duration;

use md5::{Digest as _, Md5};
use serde_json::{Value, json};

use super::lists::refused;
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
pub fn pages(patient: impl Display, kind: &str) -> Option<u64> {
    let (_, least, most) = PAGED.iter().find(|(name, ..)| *name == kind)?;
    Some(least + spread(&format!("{patient}:{kind}"), most - least + 1))
}

/// Rows that a run over so many patients leaves in the table of a kind.
pub fn rows(patients: u64, kind: &str) -> u64 {
    (1..=patients).map(|patient| pages(patient, kind).unwrap_or(1)).sum()
}

/// So many records of a page. Those of assessments name 5 to 10 detailed ones.
fn records_of(patient: &str, kind: &str, page: u64, count: u64) -> Vec<Value> {
    let seed = format!("{patient}:{kind}:{page}");
    let short = kind.chars().take(4).collect::<String>().to_uppercase();
    let record = |index: u64| {
        let mut record = json!({"id": format!("{short}-{patient}-p{page}-i{index}"), "patientId": patient,
            "dataType": kind, "value": (spread(&seed, 100) + index) % 100});
        if kind == "assessments" {
            let count = 5 + (spread(&seed, 6) + index) % 6;
            let ids = (1..=count).map(|number| format!("MDS-{patient}-p{page}-{index}-{number:02}"));
            record["mdsAssessmentIds"] = ids.collect::<Vec<_>>().into();
            record["mdsCount"] = count.into();
        }
        record
    };
    (0..count).map(record).collect()
}

fn demographics(patient: &str) -> Value {
    let number = |span: u64| spread(&format!("{patient}:demographics"), span);
    // The quote is one that a statement made by hand has to mind.
    json!({"patientId": patient, "firstName": format!("First{}", number(1000)),
        "lastName": format!("O'Last{}", number(997)),
        "dob": format!("19{:02}-{:02}-{:02}", 50 + number(50), 1 + number(12), 1 + number(28)),
        "gender": if number(2) == 0 { "M" } else { "F" }, "status": "active"})
}

/// Whether a path is one of those that share a limit, because they are about one patient or one assessment.
pub(super) fn is_of_one(path: &[&str]) -> bool {
    matches!(path, ["patient", _] | ["mds", "assessment_ids"] | ["mds", "assessment", _] | ["pft", "mds", "details"])
}

pub(super) fn of_one(path: &[&str], ask: &Ask, world: &World) -> Reply {
    if !world.admits("patient", PATIENT_RATE).0 {
        return Reply::error(429, "more requests a second than one clinic can answer").with("retry-after", 1);
    }
    if let ["mds", "assessment", id] = path {
        return Reply::json(&mds(id));
    }
    if path == ["pft", "mds", "details"] {
        return mds_details(ask);
    }
    match (ask.text("patientId"), path) {
        (None, _) => Reply::error(422, "patientId is missing"),
        (Some(patient), ["patient", kind]) => of_patient(kind, patient, ask),
        (Some(patient), _) => mds_ids(patient),
    }
}

fn of_patient(kind: &str, patient: &str, ask: &Ask) -> Reply {
    if kind == "demographics" {
        return Reply::json(&demographics(patient));
    }
    let Some(total) = pages(patient, kind) else {
        return Reply::error(404, &format!("there are no records of the kind `{kind}`"));
    };
    let page = ask.number("page", 1);
    if page == 0 || page > total {
        return Reply::json(&json!({"error": "page not found"})).status(404);
    }
    let paging = json!({"hasMore": page < total, "page": page, "pageSize": 1, "total": total});
    Reply::json(&json!({"data": records_of(patient, kind, page, 1), "paging": paging}))
}

/// A bundle of one patient, page by page: 2 to 5 of them.
pub(super) async fn records(ask: &Ask, world: &World) -> Reply {
    let most = usize::try_from(ask.number("rate_limit", PATIENT_RATE as u64)).unwrap_or(PATIENT_RATE);
    if !world.admits("patient-records", most).0 {
        return refused(429, "Too Many Requests").with("retry-after", 1);
    }
    let Some(patient) = ask.text("patientId") else { return Reply::error(422, "patientId is missing") };
    // The longest of the times that are asked for, so that a run takes what it says it takes.
    let delay = ask.float("max_delay", ask.float("min_delay", RECORD_DELAY)).clamp(0.0, 30.0);
    tokio::time::sleep(Duration::from_secs_f64(delay)).await;
    let total = 2 + spread(patient, 4);
    let (page, size) = (ask.number("page", 1), ask.number("pageSize", 10).clamp(1, 1000));
    if page == 0 || page > total {
        return Reply::error(404, &format!("patient {patient} has {total} pages"));
    }
    let bytes = ask.number("payload_kb", 100).min(10_000) * 1024 / size;
    let padding = "M".repeat(usize::try_from(bytes.saturating_sub(600).max(100)).unwrap_or(100));
    let entries: Vec<Value> =
        (0..size).map(|index| entry(patient, page, (page - 1) * size + index, &padding)).collect();
    let host = ask.headers.get("host").map_or("localhost", String::as_str);
    let url =
        |page: u64| format!("http://{host}/api/v1/patient-records?patientId={patient}&page={page}&pageSize={size}");
    let mut links = vec![json!({"relation": "self", "url": url(page)})];
    links.extend((page < total).then(|| json!({"relation": "next", "url": url(page + 1)})));
    let meta = json!({"patientId": patient, "page": page, "pageSize": size, "totalPages": total, "delaySeconds": delay,
        "estimatedResponseKB": padding.len() as u64 * size / 1024});
    Reply::json(&json!({"resourceType": "Bundle", "type": "searchset", "total": total * size, "link": links,
        "entry": entries, "meta": meta}))
}

/// One medication, as a registry of health records tells of it.
fn entry(patient: &str, page: u64, index: u64, padding: &str) -> Value {
    let id = format!("{patient}-p{page}-e{index}");
    let coding = json!({"system": "urn:drugs", "code": (1000 + index).to_string(), "display": format!("Drug-{index}")});
    let resource = json!({"resourceType": "MedicationStatement", "id": id, "status": "active",
        "subject": {"reference": format!("Patient/{patient}")},
        "medicationCodeableConcept": {"coding": [coding], "text": format!("what patient {patient} takes")},
        "effectivePeriod": {"start": "2024-01-01", "end": "2024-12-31"},
        "dosage": [{"text": "one a day", "timing": {"repeat": {"frequency": 1, "period": 1, "periodUnit": "d"}}}],
        "_payload": padding});
    json!({"fullUrl": format!("MedicationStatement/{id}"), "resource": resource})
}

fn mds_ids(patient: &str) -> Reply {
    let count = 2 + spread(&format!("{patient}:mds"), 4);
    let ids: Vec<String> = (1..=count).map(|number| format!("MDS-{patient}-{number:03}")).collect();
    Reply::json(&json!({"patientId": patient, "assessmentIds": ids, "count": count}))
}

/// A detailed assessment: three sections of three questions.
fn mds(id: &str) -> Value {
    let question = |section: u64, number: u64| {
        let answer = (spread(id, 5) + section * 10 + number) % 5;
        json!({"key": format!("B{section}0{number}"), "responses": [{"responseValue": answer.to_string()}]})
    };
    let section = |section: u64| {
        let questions: Vec<Value> = (1..=3).map(|number| question(section, number)).collect();
        json!({"sectionId": format!("S{section}"), "questions": questions})
    };
    json!({"assessmentId": id, "status": "completed", "sections": (1..=3).map(section).collect::<Vec<_>>()})
}

fn mds_details(ask: &Ask) -> Reply {
    match ask.text("assessmentId").map(str::trim).filter(|id| !id.is_empty()) {
        None => Reply::error(400, "assessmentId is missing"),
        Some(id) if id.contains(',') => Reply::error(400, "one id at a time"),
        Some(id) => Reply::json(&json!({"rowCount": 1, "rows": [{"assessment_id": id, "payload": mds(id)}]})),
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
    let (size, facility_size) = (ask.number("pageSize", 10).max(1), ask.number("patientsPerFacility", 1000).max(1));
    let mut rows = Vec::new();
    for &number in &patients {
        let facility = number.saturating_sub(1) / facility_size + 1;
        let place = json!({"patient_id": number, "facility_mapping_id": facility});
        let patient = number.to_string();
        match (kind, pages(number, kind)) {
            (_, Some(total)) => rows.extend((1..=total).map(|page| {
                let paging = json!({"hasMore": page < total, "page": page, "pageSize": size, "total": total * size});
                let payload = json!({"data": records_of(&patient, kind, page, size), "paging": paging});
                joined(&place, &json!({"page_number": page, "payload": payload, "is_last_page": page == total}))
            })),
            ("demographics", None) => rows.push(joined(&place, &json!({"payload": demographics(&patient)}))),
            ("mds", None) => {
                let id = format!("MDS-{patient}-{}", pages(number, "assessments").unwrap_or(1));
                rows.push(joined(&place, &json!({"assessment_id": id, "payload": mds(&id)})));
            }
            _ => return Reply::error(400, &format!("there are no records of the kind `{kind}`")),
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
