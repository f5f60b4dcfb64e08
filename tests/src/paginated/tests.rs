//! The endpoints as playbooks meet them.

use serde_json::{Value, json};

use super::{Paginated, patients};
use crate::Api;

async fn server() -> (Paginated, Api) {
    let server = Paginated::start().await;
    let api = Api::new(&server.url, None);
    (server, api)
}

async fn ids(api: &Api, path: &str, list: &str) -> Vec<u64> {
    let page = api.get(path).await.is(200).json();
    let items = page[list].as_array().expect("a list");
    items.iter().map(|item| item["id"].as_u64().expect("a number")).collect()
}

#[test]
fn row_counts_are_those_of_the_published_benchmark() {
    for (patients, wanted) in
        [(100, [307, 207, 251, 100]), (1_000, [3_000, 2_043, 2_485, 1_000]), (10_000, [29_898, 19_907, 25_024, 10_000])]
    {
        let found = patients::PAGED.map(|(kind, ..)| patients::rows(patients, kind));
        assert_eq!(found, wanted, "{patients} patients");
    }
    let of_ten: Vec<u64> = patients::PAGED.iter().map(|(kind, ..)| patients::rows(10, kind)).collect();
    assert_eq!(of_ten, [31, 18, 23, 10]);
}

#[tokio::test]
async fn lists_go_on_by_page_offset_and_cursor_to_the_thirty_fifth() {
    let (_server, api) = server().await;
    assert_eq!(ids(&api, "/api/v1/assessments?page=4&pageSize=10", "data").await, [31, 32, 33, 34, 35]);
    assert_eq!(ids(&api, "/api/v1/assessments?page=5", "data").await, [] as [u64; 0]);
    assert_eq!(ids(&api, "/api/v1/users?offset=33&limit=10", "users").await, [34, 35]);
    let (mut cursor, mut seen) = (String::new(), 0);
    loop {
        let page = api.get(&format!("/api/v1/events?cursor={cursor}&limit=10")).await.is(200).json();
        seen += page["events"].as_array().expect("a list").len();
        match page["next_cursor"].as_str() {
            Some(next) => cursor = next.replace('=', "%3D"),
            None => break,
        }
    }
    assert_eq!(seen, 35);
    assert_eq!(ids(&api, "/api/v1/events?cursor=nonsense&limit=2", "events").await, [1, 2]);
}

/// The names of an object's fields.
fn fields(object: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = object.as_object().expect("an object").keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn items_have_the_fields_that_playbooks_read() {
    let (_server, api) = server().await;
    for (path, at, wanted) in [
        ("/api/v1/assessments", "/data/0", "id name score"),
        ("/api/v1/assessments", "/paging", "hasMore page pageSize total"),
        ("/api/v1/users", "/users/0", "email id username"),
        ("/api/v1/events", "/events/0", "data id timestamp type"),
        ("/api/v1/flaky", "/data/0", "id value"),
        ("/api/v1/flaky", "/paging", "hasMore page pageSize"),
        ("/api/v1/errors", "/data/0", "id value"),
        ("/api/v1/rate-limited", "/data/0", "id rate_limited value"),
        ("/api/v1/rate-limited", "/rate_limit", "limit requests_in_window"),
        ("/api/v1/heavy?pageSize=1", "/data/0", "category description id metadata name payload score"),
        ("/api/v1/patient/assessments?patientId=7", "/data/0", "dataType id mdsAssessmentIds mdsCount patientId value"),
        ("/api/v1/patient/conditions?patientId=7", "/data/0", "dataType id patientId value"),
        ("/api/v1/patient/demographics?patientId=7", "", "dob firstName gender lastName patientId status"),
        ("/api/v1/mds/assessment_ids?patientId=7", "", "assessmentIds count patientId"),
        ("/api/v1/mds/assessment/M-1", "/sections/2/questions/0", "key responses"),
        ("/api/v1/pft/mds/details?assessmentId=M-1", "", "rowCount rows"),
        ("/api/v1/pft/mds/details?assessmentId=M-1", "/rows/0", "assessment_id payload"),
        ("/api/v1/patient-records?patientId=7&pageSize=4", "", "entry link meta resourceType total type"),
        ("/api/v1/patient-records?patientId=7", "/entry/0", "fullUrl resource"),
    ] {
        let answer = api.get(path).await.is(200).json();
        assert_eq!(fields(answer.pointer(at).expect(path)).join(" "), wanted, "{path} {at}");
    }
}

#[tokio::test]
async fn a_bundle_has_as_many_entries_as_are_asked_for_and_says_where_it_goes_on() {
    let (_server, api) = server().await;
    let first = api.get("/api/v1/patient-records?patientId=7&pageSize=4").await.is(200).json();
    let pages = first["meta"]["totalPages"].as_u64().expect("a number");
    assert_eq!((first["entry"].as_array().map(Vec::len), &first["total"]), (Some(4), &json!(pages * 4)));
    let next = first["link"][1]["url"].as_str().expect("there is more");
    assert!(next.ends_with("/api/v1/patient-records?patientId=7&page=2&pageSize=4"), "{next}");
    let last = api.get(&format!("/api/v1/patient-records?patientId=7&page={pages}")).await.is(200).json();
    assert_eq!(last["link"].as_array().map(Vec::len), Some(1));
    api.get(&format!("/api/v1/patient-records?patientId=7&page={}", pages + 1)).await.is(404);
}

#[tokio::test]
async fn records_of_a_chain_refer_to_what_came_before() {
    let (_server, api) = server().await;
    let page = api.get("/api/v1/reference-chain/items?page=3&pageSize=25").await.is(200).json();
    let record = &page["data"][0];
    assert_eq!(fields(record).join(" "), "batch payload prev_ref record_id record_ref");
    assert_eq!((&record["record_id"], &record["prev_ref"]), (&json!(51), &json!("record-000050")));
    assert_eq!((&page["paging"]["nextPage"], &page["paging"]["total"]), (&json!(4), &json!(382)));
    for (mode, chain) in [
        ("linked", json!(["page-000002", "page-000003"])),
        ("windowed&chain_window=1", json!(["page-000003"])),
        ("expanded", json!(["page-000001", "page-000002", "page-000003"])),
    ] {
        let refs = &api.get(&format!("/api/v1/reference-chain/items?page=3&ref_mode={mode}")).await.json()["refs"];
        assert_eq!((&refs["chain"], refs["chain_length"].as_u64()), (&chain, chain.as_array().map(|c| c.len() as u64)));
    }
    let detail = api.get("/api/v1/reference-chain/detail/1?parent_ref=page-000001&payload_kb=3").await.is(200).json();
    assert_eq!(detail["refs"]["chain"], json!(["detail-000001"]));
    assert_eq!((&detail["refs"]["parent_ref"], &detail["refs"]["mode"]), (&json!("page-000001"), &json!("linked")));
    assert_eq!(detail["payload"].as_str().map(str::len), Some(3 * 1024));
    for (id, status) in [("0", 404), ("-1", 404), ("20001", 400), ("x", 422)] {
        api.get(&format!("/api/v1/reference-chain/detail/{id}")).await.is(status);
    }
}

#[tokio::test]
async fn a_flaky_page_fails_once_until_it_is_reset() {
    let (server, api) = server().await;
    let statuses = async || {
        let (first, second) =
            (api.get("/api/v1/flaky?page=2&fail_on=2,3").await, api.get("/api/v1/flaky?page=2&fail_on=2,3").await);
        [first.status, second.status]
    };
    assert_eq!(statuses().await, [500, 200]);
    assert_eq!(statuses().await, [200, 200]);
    api.post("/api/v1/flaky/reset", json!({})).await.is(200);
    assert_eq!(statuses().await, [500, 200]);
    assert_eq!(server.count("GET /api/v1/flaky"), 6);
}

#[tokio::test]
async fn limits_and_errors_say_when_to_come_back() {
    let (_server, api) = server().await;
    api.get("/api/v1/rate-limited?requests_per_second=1").await.is(200);
    let refused = api.get("/api/v1/rate-limited?requests_per_second=1").await.is(429);
    assert_eq!((refused.header("retry-after"), &refused.json()["limit"]), ("1", &json!(1)));
    assert_eq!(api.get("/api/v1/errors?error_type=429&retry_after=7").await.is(429).header("retry-after"), "7");
    api.get("/api/v1/errors?error_type=auth").await.is(401);
    api.get("/api/v1/errors").await.is(200);
}

#[tokio::test]
async fn a_batch_has_every_page_of_every_patient() {
    let (_server, api) = server().await;
    for (kind, rows) in [("assessments", 31), ("conditions", 18), ("demographics", 10), ("mds", 10)] {
        let path = format!("/api/v1/pft/batch/{kind}?patientIds=1,2,3,4,5,6,7,8,9,10&patientsPerFacility=5");
        let batch = api.get(&path).await.is(200).json();
        assert_eq!((&batch["rowCount"], batch["rows"].as_array().map(Vec::len)), (&json!(rows), Some(rows)), "{kind}");
        let last = &batch["rows"][rows - 1];
        assert_eq!((&last["patient_id"], &last["facility_mapping_id"]), (&json!(10), &json!(2)), "{kind}");
    }
    api.get("/api/v1/pft/batch/assessments?patientIds=").await.is(400);
    api.get("/api/v1/pft/batch/nothing?patientIds=1").await.is(400);
    let batch = api.get("/api/v1/pft/batch/conditions?patientIds=1&pageSize=3").await.is(200).json();
    let payload = &batch["rows"][0]["payload"];
    assert_eq!((payload["data"].as_array().map(Vec::len), &payload["paging"]["pageSize"]), (Some(3), &json!(3)));
}

#[tokio::test]
async fn a_patient_has_the_pages_the_hash_says() {
    let (_server, api) = server().await;
    let total = patients::pages(1, "assessments").expect("a kind of pages");
    let last: Value = api.get(&format!("/api/v1/patient/assessments?patientId=1&page={total}")).await.is(200).json();
    assert_eq!(last["paging"]["hasMore"], json!(false));
    let ids = last["data"][0]["mdsAssessmentIds"].as_array().expect("a list").len();
    assert!((5..=10).contains(&ids), "{ids}");
    api.get(&format!("/api/v1/patient/assessments?patientId=1&page={}", total + 1)).await.is(404);
    api.get("/api/v1/pft/mds/details?assessmentId=A,B").await.is(400);
}

#[tokio::test]
async fn the_probe_knows_how_many_were_there_together() {
    let (_server, api) = server().await;
    let slow = api.get("/api/v1/concurrency/probe?delay_seconds=0.2&label=slow");
    let fast = async {
        // The slow one is there when the probe has seen it.
        while api.get("/api/v1/concurrency/stats").await.json()["active"] != json!(1) {}
        api.get("/api/v1/concurrency/probe").await.is(200)
    };
    tokio::join!(slow, fast);
    let stats = api.get("/api/v1/concurrency/stats").await.is(200).json();
    let shown = ["started", "completed", "active", "max_active"].map(|name| stats[name].as_u64().unwrap_or(99));
    assert_eq!(shown, [2, 2, 0, 2]);
}

#[tokio::test]
async fn stand_ins_echo_and_list() {
    let (_server, api) = server().await;
    let told = api.post("/post?a=1", json!({"b": 2})).await.is(200).json();
    assert_eq!((&told["json"]["b"], &told["args"]["a"]), (&json!(2), &json!("1")));
    api.get("/status/503").await.is(503);
    assert_eq!(api.get("/users").await.is(200).json().as_array().map(Vec::len), Some(10));
    assert_eq!(api.get("/posts?userId=2&_limit=3").await.is(200).json()[0]["id"], json!(11));
    api.get("/no/such/thing").await.is(404);
}
