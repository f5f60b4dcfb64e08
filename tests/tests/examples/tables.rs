//! The example that writes to a database, and the one that cleans rows.

use noetl_tests::Postgres;
use serde_json::json;

use crate::shop::{ORDERS, Shop, TOTAL};
use crate::support::Desk;

#[tokio::test]
async fn rows_of_an_api_are_in_the_table_once_however_often_they_are_copied() {
    let (desk, shop) = (Desk::start().await, Shop::start().await);
    let postgres = Postgres::start();
    let credential = json!({
        "name": "shop_db",
        "type": "postgres",
        "data": {
            "host": postgres.host, "port": postgres.port, "database": postgres.database, "user": postgres.user,
            "password": postgres.password,
        },
        "hosts": [format!("{}:{}", postgres.host, postgres.port)],
    });
    desk.admin.post("/api/credentials", credential).await.is(201);
    desk.register("api_to_table.yaml");
    let payload = json!({"api_url": shop.url, "pg": "shop_db"});
    let copied = json!({"orders": ORDERS, "total": format!("{TOTAL}.00")});
    assert_eq!(desk.result("examples/api_to_table", payload.clone()).await, copied);
    assert_eq!(desk.result("examples/api_to_table", payload).await, copied, "again, and none is there twice");
}

#[tokio::test]
async fn untidy_rows_come_out_clean() {
    let desk = Desk::start().await;
    desk.register("python_cleaning.yaml");
    let cleaned = desk.result("examples/python_cleaning", json!({})).await;
    let expected = json!({
        "names": ["Ada Lovelace", "Grace Hopper"], "born": ["1815-12-10", "1906-12-09"], "left_out": 1,
    });
    assert_eq!(cleaned, expected);
}
