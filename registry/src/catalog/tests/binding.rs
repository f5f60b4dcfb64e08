//! A tenant's override of a service.

use super::*;

const AUTH: &str = "system/auth";
const SAML: &str = "acme/system/saml";

async fn bench() -> Bench {
    let bench = Bench::with(vec![embedded(AUTH, "0.1.0")]);
    bench.push(SAML, "1.0.0", "saml").await.expect("pushes");
    bench
}

#[tokio::test]
async fn a_binding_serves_its_tenant_and_nobody_else() {
    let bench = bench().await;
    bench.bind("acme", AUTH, Some(SAML)).await.expect("binds");
    assert_eq!(bench.serves("acme", AUTH), served(SAML, "1.0.0", Source::Binding));
    assert_eq!(bench.serves("other", AUTH), served(AUTH, "0.1.0", Source::Embedded));
    // A version the call names is one of the service itself.
    assert_eq!(bench.serves_with("acme", AUTH, &exactly("0.1.0")), served(AUTH, "0.1.0", Source::Embedded));
    let view = bench.catalog.plugin(&path(AUTH)).expect("known");
    assert_eq!(view.bindings, BTreeMap::from([(tenant("acme"), path(SAML))]));
    let view = bench.catalog.plugin(&path(SAML)).expect("known");
    assert_eq!(view.serves, BTreeMap::from([(tenant("acme"), vec![path(AUTH)])]));
    bench.bind("acme", AUTH, None).await.expect("unbinds");
    assert_eq!(bench.serves("acme", AUTH), served(AUTH, "0.1.0", Source::Embedded));
}

#[tokio::test]
async fn the_override_has_channels_and_pins_of_its_own() {
    let bench = bench().await;
    bench.bind("acme", AUTH, Some(SAML)).await.expect("binds");
    bench.push_to("canary", SAML, "2.0.0").await;
    assert_eq!(bench.serves_with("acme", AUTH, &channel("canary")), served(SAML, "2.0.0", Source::Binding));
    bench.pin("acme", SAML, Some("2.0.0")).await.expect("pins");
    assert_eq!(bench.serves("acme", AUTH), served(SAML, "2.0.0", Source::Binding));
    // A pin of the service does not undo the binding.
    bench.pin("acme", AUTH, Some("0.1.0")).await.expect("pins");
    assert_eq!(bench.serves("acme", AUTH), served(SAML, "2.0.0", Source::Binding));
}

#[tokio::test]
async fn a_binding_needs_an_overridable_service_and_a_fitting_plugin_of_the_tenant() {
    let bench = bench().await;
    bench.push("tools/fixed", "1.0.0", "x").await.expect("pushes");
    bench.push("other/system/auth", "1.0.0", "y").await.expect("pushes");
    let tool = bench
        .new_version(manifest_with("acme/tool", "1.0.0", "world = \"tool\"\ncapabilities = [\"payload\"]"), "t")
        .await;
    bench.push_as(&admin(), tool).await.expect("pushes");
    let refused =
        async |service: &str, to: &str| bench.bind("acme", service, Some(to)).await.expect_err("refused").code();
    assert_eq!(refused("tools/fixed", SAML).await, "not_overridable");
    assert_eq!(refused(AUTH, "other/system/auth").await, "foreign_tenant");
    assert_eq!(refused(AUTH, "tools/fixed").await, "foreign_tenant");
    assert_eq!(refused(AUTH, "acme/tool").await, "other_world");
    assert_eq!(refused(AUTH, "acme/none").await, "plugin_not_found");
    bench.push_to("canary", "acme/early", "1.0.0").await;
    assert_eq!(refused(AUTH, "acme/early").await, "not_serving");
    assert_eq!(refused("system/none", SAML).await, "plugin_not_found");
    assert_eq!(refused(SAML, SAML).await, "bound_to_itself");
    assert_eq!(bench.events(), 5, "a refused binding writes nothing");
}

#[tokio::test]
async fn an_override_that_cannot_serve_is_an_error_and_never_the_service_it_replaced() {
    let bench = bench().await;
    bench.bind("acme", AUTH, Some(SAML)).await.expect("binds");
    let tool =
        bench.new_version(manifest_with(SAML, "2.0.0", "world = \"tool\"\ncapabilities = [\"payload\"]"), "t").await;
    bench.push_as(&admin(), tool).await.expect("pushes");
    let error = bench.serves("acme", AUTH).expect_err("another world");
    assert_eq!(error.code(), "binding_broken");
    assert!(error.to_string().contains("it is a tool and not a transform"), "{error}");
}

#[tokio::test]
async fn a_service_that_stops_being_overridable_serves_itself() {
    let bench = bench().await;
    bench.bind("acme", AUTH, Some(SAML)).await.expect("binds");
    bench.push(AUTH, "0.2.0", "strict").await.expect("pushes");
    assert_eq!(bench.serves("acme", AUTH), served(AUTH, "0.2.0", Source::Channel));
}

#[tokio::test]
async fn the_only_version_of_an_override_is_in_use() {
    let bench = bench().await;
    bench.bind("acme", AUTH, Some(SAML)).await.expect("binds");
    bench.push_to("stable", SAML, "2.0.0").await;
    let delete = async |number: &str| bench.catalog.delete_version(&admin(), &path(SAML), &version(number), "").await;
    delete("1.0.0").await.expect("2.0.0 remains");
    assert_eq!(delete("2.0.0").await.expect_err("in use").code(), "version_in_use");
}
