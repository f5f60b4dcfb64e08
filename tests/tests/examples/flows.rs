//! Examples that need the API, or nothing at all.

use noetl_tests::run;
use serde_json::{Value, json};

use crate::shop::{ORDERS, Shop, TOTAL};
use crate::support::{Desk, text};

#[test]
fn every_example_is_valid_as_it_is() {
    let folder = crate::support::examples().display().to_string();
    let mut command = std::process::Command::new(noetl_tests::noetl_bin());
    let checked = run(command.args(["validate", &folder, "--json"])).ok().json();
    let files = checked["files"].as_array().expect("a list");
    assert!(files.len() >= 12, "{checked:#}");
    for file in files {
        assert_eq!(file["problems"], json!([]), "{}", file["file"]);
    }
}

#[tokio::test]
async fn pages_are_read_one_after_the_other_and_all_at_once() {
    let (desk, shop) = (Desk::start().await, Shop::start().await);
    let sum = json!({"pages": 3, "orders": ORDERS, "total": TOTAL});
    desk.register("pagination.yaml");
    assert_eq!(desk.result("examples/pagination", json!({"api_url": shop.url, "size": 3})).await, sum);
    desk.register("fan_out.yaml");
    assert_eq!(desk.result("examples/fan_out", json!({"api_url": shop.url, "size": 3})).await, sum);
    let one = desk.result("examples/fan_out", json!({"api_url": shop.url, "size": 100, "at_once": 1})).await;
    assert_eq!(one, json!({"pages": 1, "orders": ORDERS, "total": TOTAL}));
}

#[tokio::test]
async fn what_may_pass_is_tried_again_and_what_will_not_is_given_up() {
    let (desk, shop) = (Desk::start().await, Shop::start().await);
    desk.register("retry.yaml");
    let passed = desk.result("examples/retry", json!({"api_url": shop.url})).await;
    assert_eq!(passed, json!({"from": "api", "status": 200}));
    assert_eq!(shop.flaky_requests(), 3, "two failures and a success");
    let missing = desk.result("examples/retry", json!({"api_url": shop.url, "resource": "missing"})).await;
    assert_eq!(missing["from"], "cache");
    assert!(missing["reason"].as_str().is_some_and(|reason| reason.contains("404")), "{missing}");
}

#[tokio::test]
async fn a_person_decides_what_is_paid() {
    let desk = Desk::start().await;
    desk.register("approval.yaml");
    let small = desk.result("examples/approval", json!({"amount": 10})).await;
    assert_eq!(small, json!({"paid": 10, "approved_by": "nobody had to"}));
    for (value, expected) in [
        (r#"{"approved": true, "by": "Ada"}"#, json!({"paid": 5000, "approved_by": "Ada"})),
        (r#"{"approved": false, "by": "Grace"}"#, json!({"paid": 0, "refused_by": "Grace"})),
    ] {
        let id = desk.begin("examples/approval", json!({})).await;
        let parked = |shown: &Value| {
            shown["steps"].as_array().is_some_and(|steps| steps.iter().any(|step| step["status"] == "PARKED"))
        };
        desk.until(&id, parked).await;
        desk.noetl(&["why", &id]).ok().says("Pay 5000?");
        desk.noetl(&["resume", &id, "ask", "--value", value]).ok();
        let ended = desk.until(&id, |shown| shown["status"] == "COMPLETED").await;
        assert_eq!(ended["output"], expected);
    }
}

#[tokio::test]
async fn nobody_in_time_is_an_answer_too() {
    let desk = Desk::start().await;
    let hasty = text("approval.yaml").replace("timeout: 3d", "timeout: 50ms");
    desk.admin.post("/api/catalog/register", json!({"content": hasty})).await.is(201);
    let late = desk.result("examples/approval", json!({})).await;
    assert_eq!(late, json!({"paid": 0, "reason": "nobody answered"}));
}

#[tokio::test]
async fn a_schedule_starts_the_playbook_with_its_own_payload() {
    let desk = Desk::start().await;
    desk.register("schedule.yaml");
    let by_hand = desk.result("examples/schedule", json!({})).await;
    assert_eq!(by_hand, json!({"text": "245 in all, 120 at best", "asked_by": "somebody"}));

    let soon =
        text("schedule.yaml").replace("0 6 * * 1-5", "* * * * * *").replace("examples/schedule", "examples/soon");
    desk.admin.post("/api/catalog/register", json!({"content": soon})).await.is(201);
    let query = "/api/executions?consistency=strong&path=examples/soon";
    let id = loop {
        let started = desk.admin.get(query).await.is(200).json();
        if let Some(id) = started["executions"][0]["execution_id"].as_str() {
            break id.to_owned();
        }
    };
    let ended = desk.until(&id, |shown| shown["status"] == "COMPLETED").await;
    assert_eq!(ended["output"]["asked_by"], "schedule");
}

#[tokio::test]
async fn a_library_of_playbooks_is_called_like_functions() {
    let desk = Desk::start().await;
    desk.register("library");
    let shop = desk.result("examples/library/shop", json!({})).await;
    assert_eq!(shop, json!({"label": "ADA (2 items)", "cost": 101.6}));
    let price = desk.result("examples/library/price", json!({"item": "pen", "count": 1, "price": 2})).await;
    assert_eq!(price["cost"].as_f64(), Some(2.0), "{price}");
}
