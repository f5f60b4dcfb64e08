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
    assert_eq!(refused.header("retry-after"), "1");
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
    api.get("/api/v1/pft/batch/nothing?patientIds=1").await.is(404);
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
