//! Playbooks of others run as they are: the project's own set, one a construct of the language, and the suite that is
//! beside the checkout, where it is.
//!
//! What has to come of each is in `oracles.toml`. The suite's playbooks are no part of the project; without them this says
//! so and is content with its own.

use noetl_tests::compat::{self, Options, Report, Verdict};

/// What of the suite needs what this build does not have: DuckDB, and subscriptions.
const NOT_HERE: [&str; 4] = [
    "duckdb_test.yaml",
    "subscription/iot_sensor_stream.subscription.yaml",
    "subscription/spool_outage_stream.subscription.yaml",
    "subscription/webhook_orders.subscription.yaml",
];

async fn run(options: &Options) -> Report {
    let report = compat::run(options).await.unwrap_or_else(|error| panic!("{error}"));
    println!("{report}");
    let failed: Vec<String> = report.of(Verdict::Failed).map(ToString::to_string).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    report
}

#[tokio::test(flavor = "multi_thread")]
async fn our_own_playbooks_do_what_their_oracles_say() {
    let report = run(&Options::of(compat::own_folder())).await;
    let not_here: Vec<&str> = report.of(Verdict::NotHere).map(|row| row.file.as_str()).collect();
    assert!(not_here.is_empty(), "they need what every build has: {not_here:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_suite_does_what_its_oracles_say() {
    let folder = compat::suite_folder();
    if !folder.is_dir() {
        println!("SKIPPED: {} is not there", folder.display());
        return;
    }
    let report = run(&Options::of(folder)).await;
    let not_here: Vec<&str> = report.of(Verdict::NotHere).map(|row| row.file.as_str()).collect();
    assert_eq!(not_here, NOT_HERE, "what is not here has to be known");
}
