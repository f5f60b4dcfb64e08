//! Which names are names.

use super::*;

#[test]
fn paths_of_any_depth_and_case_are_taken() {
    for good in ["hello", "tests/fixtures/playbooks/hello_world", "Amadeus/AI_api-v1.2/x", "_x", "9", "system/outbox"] {
        assert_eq!(path(good).as_str(), good);
        assert_eq!(serde_json::from_value::<PlaybookPath>(json!(good)).expect("reads"), path(good));
    }
    let long = "a".repeat(200);
    assert_eq!(path(&long).as_str(), long);
}

#[test]
fn slashes_in_front_are_no_part_of_a_path() {
    for written in ["/orders/enrich", "//orders/enrich"] {
        assert_eq!(path(written), path("orders/enrich"));
        assert_eq!(serde_json::from_value::<PlaybookPath>(json!(written)).expect("reads"), path("orders/enrich"));
        let id: CatalogId = format!("{written}@2").parse().expect("an id");
        assert_eq!(id.to_string(), "orders/enrich@2");
    }
    assert!(path("/system/a").is_shared());
}

#[test]
fn what_is_no_path_is_refused_with_the_rule() {
    let long = "a".repeat(201);
    for bad in
        ["", "/", "a/", "a//b", "a/../b", "a/.", "-a", ".a", "a b", "a@1", "a\\b", "ä", "system", "/system", &long]
    {
        let error = PlaybookPath::new(bad).expect_err(bad).to_string();
        assert!(error.contains("orders/enrich"), "{error}");
        assert!(serde_json::from_value::<PlaybookPath>(json!(bad)).is_err(), "{bad}");
    }
}

#[test]
fn only_what_is_under_system_is_shared() {
    for (at, shared) in [("system/a", true), ("system/a/b", true), ("systems/a", false), ("a/system/b", false)] {
        assert_eq!(path(at).is_shared(), shared, "{at}");
        let owner = Owner::of(&tenant("acme"), &path(at));
        assert_eq!(owner.as_str(), if shared { "system" } else { "acme" });
        assert_eq!(Owner::try_from(owner.to_string()).expect("reads"), owner);
    }
}

#[test]
fn a_catalog_id_is_a_path_and_a_version() {
    let id: CatalogId = "orders/enrich@12".parse().expect("an id");
    assert_eq!(id, CatalogId { path: path("orders/enrich"), version: 12 });
    assert_eq!(id.to_string(), "orders/enrich@12");
    for bad in ["orders", "orders@", "orders@0", "orders@-1", "orders@x", "@1", "a//b@1", "a@1@2"] {
        assert!(bad.parse::<CatalogId>().is_err(), "{bad}");
    }
}
