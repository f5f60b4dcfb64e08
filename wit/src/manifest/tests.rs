//! The manifest: what a file may say, what is said about one that is wrong, and the section it travels in.

use super::options::{Kind, OPTIONS, option, tables};
use super::*;
use crate::rings::Capability;

const SMALLEST: &str = "path = \"acme/orders/enrich\"\nversion = \"1.0.0\"\nworld = \"transform\"\n";

fn problems(text: &str) -> Vec<Problem> {
    Manifest::parse(text).expect_err("the file is wrong").0
}

fn only_problem(text: &str) -> Problem {
    let mut found = problems(text);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn what_a_file_leaves_out_has_the_default_of_its_row() {
    let manifest = Manifest::parse(SMALLEST).expect("complete");
    assert_eq!(manifest.limits, Limits::default());
    assert!(manifest.capabilities.is_empty() && manifest.http.allow.is_empty() && manifest.contract.is_empty());
    assert_eq!(manifest.failure, FailurePolicy { quarantine_after: 5, quarantine_secs: 30, rollback: true });
    assert!(!manifest.overridable && !manifest.retry_safe);
    assert_eq!(manifest.instance, InstancePolicy::Fresh);
    assert_eq!(manifest.build.target, BuildTarget::Unknown);
}

#[test]
fn every_row_takes_its_own_default_and_example() {
    for row in OPTIONS {
        assert!(parse::literal_value(row, row.example).is_some(), "the example of `{}` is refused", row.key);
        if let Some(default) = row.default {
            assert!(parse::literal_value(row, default).is_some(), "the default of `{}` is refused", row.key);
        }
        assert!(!row.help.is_empty() && Version::parse(row.since).is_ok(), "`{}`", row.key);
    }
    let mut keys: Vec<_> = OPTIONS.iter().map(|row| row.key).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), OPTIONS.len(), "an option has two rows");
}

#[test]
fn every_option_reaches_the_manifest() {
    let text = r#"
        path = "acme/system/auth"
        version = "2.1.0-rc.1"
        world = "tool"
        description = "signs people in"
        capabilities = ["log", "http-client", "payload"]
        overridable = true
        instance = "resident"
        retry_safe = true
        [limits]
        cpu_ms = 200
        wall_ms = 30_000
        memory_mb = 0x80
        output_mb = 2
        host_calls = 0
        host_mb = 3
        [failure]
        quarantine_after = 0
        quarantine_secs = 60
        rollback = false
        [http]
        allow = ["*.example.org", "api.example.com"]
        [contract]
        "noetl:kv" = "0.1"
        [build]
        target = "wasm32-wasip2"
    "#;
    let manifest = Manifest::parse(text).expect("complete");
    let default = Manifest::parse(SMALLEST).expect("complete");
    let (json, default) =
        (serde_json::to_value(&manifest).expect("json"), serde_json::to_value(default).expect("json"));
    // A field that still has its default was not taken from the file.
    for (field, value) in json.as_object().expect("object") {
        assert_ne!(value, &default[field], "`{field}` was not read");
    }
    assert_eq!(manifest.limits.memory_bytes, 128 << 20);
    assert_eq!(manifest.limits.host_bytes, 3 << 20);
    assert_eq!((manifest.world, manifest.limits.host_calls), (World::Tool, 0));
    assert!(manifest.capabilities.contains(Capability::HttpClient));
    assert_eq!(serde_json::from_value::<Manifest>(json).expect("reads back"), manifest);
}

#[test]
fn all_problems_of_a_file_are_reported_with_their_places() {
    let text = "path = \"Acme\"\nversion = \"1\"\nworld = \"transfrom\"\ncapabilites = []\n\n[limits]\ncpu_ms = 0\n  wall_ms = \"1\"\n";
    let found = problems(text);
    let places: Vec<_> = found.iter().map(|problem| (problem.line, problem.column, problem.key.clone())).collect();
    let key = |key: &str| Some(key.to_owned());
    assert_eq!(
        places,
        [
            (1, 8, key("path")),
            (2, 11, key("version")),
            (3, 9, key("world")),
            (4, 1, key("capabilites")),
            (7, 10, key("limits.cpu_ms")),
            (8, 13, key("limits.wall_ms")),
        ]
    );
    assert_eq!(found[2].suggestion.as_deref(), Some("did you mean \"transform\"?"));
    assert_eq!(found[3].suggestion.as_deref(), Some("did you mean `capabilities`?"));
    assert_eq!(found[4].suggestion.as_deref(), Some("use 1 to 600000"));
    assert_eq!(found.len(), ManifestErrors(found.clone()).to_string().lines().count());
}

#[test]
fn a_problem_is_told_of_the_file_it_is_in() {
    let problem = only_problem(&format!("{SMALLEST}[limits]\ncpu_ms = 0\n"));
    assert!(problem.to_string().starts_with("plugin.toml:5:10: "), "{problem}");
    assert!(problem.in_file("a.py", Some((9, 12))).starts_with("a.py:9:12: "));
    assert!(problem.in_file("a.py", None).starts_with("a.py: "));
    assert!(problem.in_file("a.py", None).ends_with("use 1 to 600000"));
}

#[test]
fn an_unknown_key_is_an_error_that_says_where_the_option_lives() {
    let in_wrong_table = only_problem(&format!("cpu_ms = 5\n{SMALLEST}"));
    assert_eq!(in_wrong_table.suggestion.as_deref(), Some("it belongs into the table `[limits]`"));
    let too_deep = only_problem(&format!("{SMALLEST}[limits]\nretry_safe = true\n"));
    assert!(too_deep.suggestion.is_some_and(|text| text.contains("top of the file")));
    let nothing_like_it = only_problem(&format!("{SMALLEST}zzz = 1\n"));
    assert!(nothing_like_it.suggestion.is_some_and(|text| text.contains("noetl plugin schema")));
    assert!(only_problem(&format!("{SMALLEST}limits = 3\n")).message.contains("a whole number"));
}

#[test]
fn a_file_cannot_name_its_ring_or_digest() {
    let ring = only_problem(&format!("{SMALLEST}ring = \"system\"\n"));
    assert!(ring.to_string().contains("path and the privilege"), "{ring}");
    let digest = only_problem(&format!("{SMALLEST}[build]\ndigest = \"sha256:00\"\n"));
    assert!(digest.to_string().contains("registry computes it"), "{digest}");
}

#[test]
fn a_missing_option_is_shown_with_an_example() {
    let found = problems("");
    assert_eq!(found.len(), OPTIONS.iter().filter(|row| row.default.is_none()).count());
    assert!(found.iter().any(|problem| problem.suggestion.as_deref() == Some("add `world = \"transform\"`")));
}

#[test]
fn capabilities_must_come_with_what_they_need() {
    let problem = only_problem(&format!("{SMALLEST}capabilities = [\"objects\"]\n"));
    assert_eq!(problem.suggestion.as_deref(), Some("add \"payload\" to the list"));
    assert!(Manifest::parse(&format!("{SMALLEST}capabilities = [\"objects\", \"payload\"]\n")).is_ok());
    let typo = only_problem(&format!("{SMALLEST}capabilities = [\"lok\"]\n"));
    assert_eq!((typo.line, typo.column), (4, 17));
    assert_eq!(typo.suggestion.as_deref(), Some("did you mean \"log\"?"));
    assert_eq!(problems(&format!("{SMALLEST}capabilities = [\"log\", \"log\", 3]\n")).len(), 2);
}

#[test]
fn hosts_without_the_capability_are_an_error() {
    let problem = only_problem(&format!("{SMALLEST}[http]\nallow = [\"example.com\"]\n"));
    assert_eq!(problem.key.as_deref(), Some("http.allow"));
}

#[test]
fn a_requirement_names_a_package_of_the_contract() {
    let with = |line: &str| format!("{SMALLEST}[contract]\n{line}\n");
    assert!(Manifest::parse(&with("\"noetl:kv\" = \">=0.1, <0.3\"")).is_ok());
    assert_eq!(only_problem(&with("\"noetl:kw\" = \"0.1\"")).suggestion.as_deref(), Some("did you mean \"noetl:kv\"?"));
    assert!(only_problem(&with("\"noetl:kv\" = \"latest\"")).message.contains("requirement"));
    assert!(only_problem(&with("\"noetl:kv\" = 1")).message.contains("a whole number"));
}

#[test]
fn what_is_not_toml_is_said_to_be_so() {
    let found = problems("path = \nworld =");
    assert!(found.iter().all(|problem| problem.message.starts_with("this is not TOML")), "{found:?}");
    assert_eq!(found[0].line, 1);
    assert!(problems(&"#".repeat(section::MAX_BYTES + 1))[0].message.contains("65537 bytes"));
}

#[test]
fn host_patterns_cover_what_they_say_and_nothing_else() {
    let pattern = |text: &str| HostPattern::new(text).expect("valid");
    assert!(pattern("api.example.com").matches("API.example.com.", 80));
    assert!(!pattern("api.example.com").matches("xapi.example.com", 80));
    assert!(pattern("*.example.org").matches("a.b.example.org", 443));
    for outside in ["example.org", "badexample.org", ".example.org.evil.com", "example.org.evil.com"] {
        assert!(!pattern("*.example.org").matches(outside, 443), "{outside}");
    }
    assert!(pattern("localhost:8443").matches("localhost", 8443));
    assert!(!pattern("localhost:8443").matches("localhost", 443));
    assert!(pattern("*").matches("anything", 1));
    for bad in ["", "*.", "*.*", "a..b", "a b", "http://a.b", "a.b/c", "A.b", "a:0", "a:99999", "-a", "*a.b", "a.b:"] {
        assert!(HostPattern::new(bad).is_err(), "{bad:?} was accepted");
    }
}

#[test]
fn page_schema_and_help_name_every_option() {
    let (page, help, schema) = (docs::markdown(), docs::help(), docs::json_schema());
    for row in OPTIONS {
        assert!(page.contains(&format!("\n## `{}`\n", row.key)), "the page lacks `{}`", row.key);
        assert!(help.contains(&format!("{} (", row.key)), "the help lacks `{}`", row.key);
        let pointer = match row.key.split_once('.') {
            Some((table, name)) => format!("/properties/{table}/properties/{name}"),
            None => format!("/properties/{}", row.key),
        };
        let option = schema.pointer(&pointer).unwrap_or_else(|| panic!("the schema lacks `{}`", row.key));
        assert_eq!(option["description"], row.help);
        assert_eq!(option.get("default").is_some(), row.default.is_some(), "`{}`", row.key);
        if let Kind::Number { min, max } = row.kind {
            assert_eq!((&option["minimum"], &option["maximum"]), (&min.into(), &max.into()));
        }
    }
    for table in tables() {
        assert_eq!(schema["properties"][table]["additionalProperties"], false);
    }
    assert_eq!(schema["required"], serde_json::json!(["path", "version", "world"]));
    assert!(option("limits.cpu_ms").is_some() && option("limits").is_none());
}

/// The smallest component there is: a preamble.
const EMPTY_COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

#[test]
fn a_manifest_travels_inside_the_component() {
    let text = format!("{SMALLEST}description = \"{}\"\n", "é".repeat(200));
    let component = embed(EMPTY_COMPONENT, &text).expect("embeds");
    assert_eq!(extract(EMPTY_COMPONENT), Ok(None));
    assert_eq!(extract(&component), Ok(Some(text)));
    assert_eq!(embed(&component, "again"), Err(SectionError::Present));
    assert!(component.starts_with(EMPTY_COMPONENT));
}

#[test]
fn two_manifests_are_refused_and_a_nested_one_is_not_ours() {
    let inner = embed(EMPTY_COMPONENT, "inner").expect("embeds");
    let twice = [inner.as_slice(), &inner[EMPTY_COMPONENT.len()..]].concat();
    assert_eq!(extract(&twice), Err(SectionError::Twice));
    // Section 4 of a component holds a nested component.
    let outer = [EMPTY_COMPONENT, &[4, inner.len() as u8], &inner].concat();
    assert_eq!(extract(&outer), Ok(None));
    let both = embed(&outer, "outer").expect("the nested manifest is not in the way");
    assert_eq!(extract(&both), Ok(Some("outer".to_owned())));
}

#[test]
fn bytes_that_are_no_component_are_named() {
    assert!(matches!(extract(b"hello"), Err(SectionError::NotWasm(_))));
    assert!(matches!(extract(b""), Err(SectionError::NotWasm(_))));
    assert_eq!(extract(b"\0asm\x01\0\0\0"), Err(SectionError::CoreModule));
    let large = "#".repeat(section::MAX_BYTES + 1);
    assert_eq!(embed(EMPTY_COMPONENT, &large), Err(SectionError::TooLarge(large.len())));
}

#[test]
fn no_cut_and_no_flipped_byte_makes_reading_panic() {
    let inner = embed(EMPTY_COMPONENT, "inner").expect("embeds");
    let outer = [EMPTY_COMPONENT, &[4, inner.len() as u8], &inner].concat();
    let whole = embed(&outer, SMALLEST).expect("embeds");
    for end in 0..whole.len() {
        // A cut at the end of a section leaves a component without a manifest; any other is an error.
        assert!(!matches!(extract(&whole[..end]), Ok(Some(_))), "cut at {end}");
    }
    for at in 0..whole.len() {
        for value in [0x00, 0x7f, 0x80, 0xff] {
            let mut bent = whole.clone();
            bent[at] = value;
            let _ = extract(&bent);
        }
    }
}

#[test]
fn a_manifest_can_be_replaced_and_nothing_else_changes() {
    let plain = b"\0asm\x0d\0\x01\0".to_vec();
    let first = embed(&plain, &"x = 1\n".repeat(40)).expect("embeds");
    let with_more = [&first[..], &[0, 3, 2, b'a', b'b']].concat();
    let second = replace(&with_more, "y = 2\n").expect("replaces");
    assert_eq!(extract(&second), Ok(Some("y = 2\n".to_owned())));
    assert_eq!(second, embed(&[&plain[..], &[0, 3, 2, b'a', b'b']].concat(), "y = 2\n").expect("embeds"));
}

#[test]
fn a_tool_without_payload_is_told_to_list_it() {
    let text = "path = \"a/b\"\nversion = \"1.0.0\"\nworld = \"tool\"\n";
    let problems = Manifest::parse(text).expect_err("tools speak in payloads").to_string();
    assert!(problems.contains("add \"payload\""), "{problems}");
    Manifest::parse(&format!("{text}capabilities = [\"payload\"]\n")).expect("complete");
}

#[test]
fn a_host_is_new_unless_an_older_pattern_covers_it() {
    let policy = |list: &[&str]| HttpPolicy {
        allow: list.iter().map(|text| HostPattern::new(*text).expect("a pattern")).collect(),
    };
    let beyond = |new: &[&str], old: &[&str]| -> Vec<String> {
        policy(new).beyond(&policy(old)).iter().map(ToString::to_string).collect()
    };
    assert!(beyond(&["a.example.org", "*.b.example.org", "x.com:443"], &["*.example.org", "x.com"]).is_empty());
    assert!(beyond(&["anything.com", "*.x.org", "*"], &["*"]).is_empty());
    assert_eq!(beyond(&["example.org", "badexample.org"], &["*.example.org"]), ["example.org", "badexample.org"]);
    assert_eq!(beyond(&["*", "*.org"], &["*.example.org"]), ["*", "*.org"]);
    assert_eq!(beyond(&["x.com", "x.com:80"], &["x.com:443"]), ["x.com", "x.com:80"]);
}

#[test]
fn source_text_names_its_language_and_entry_and_gets_room_for_an_interpreter() {
    let top = "path = \"acme/a\"\nversion = \"1.0.0\"\nworld = \"transform\"\n";
    let parse = |rest: &str| Manifest::parse(&format!("{top}{rest}"));
    let manifest = parse("[source]\nlanguage = \"python\"\nentry = \"main.py\"\n").expect("valid");
    let source = manifest.source.expect("source");
    assert_eq!((source.language.as_str(), source.entry.as_str()), ("python", "main.py"));
    assert_eq!(manifest.limits.memory_bytes, 128 << 20);
    let small = parse("[limits]\nmemory_mb = 64\n[source]\nlanguage = \"js\"\nentry = \"a.js\"\n").expect("valid");
    assert_eq!(small.limits.memory_bytes, 64 << 20);
    assert_eq!(parse("").expect("valid").source, None);
    for (rest, wanted) in [
        ("[source]\nlanguage = \"python\"\n", "`source.entry` is missing"),
        ("[source]\nentry = \"main.py\"\n", "of no use alone"),
        ("[source]\nlanguage = \"Python!\"\nentry = \"main.py\"\n", "python"),
    ] {
        let errors = parse(rest).expect_err(rest).to_string();
        assert!(errors.contains(wanted), "{errors}");
    }
}
