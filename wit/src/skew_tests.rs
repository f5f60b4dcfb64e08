//! Version skew, on components made from altered copies of the contract.

use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::ManglingAndAbi;

use super::*;
use crate::inspect::decode;
use crate::packages::SOURCES;

/// A component that implements a world of the contract after `edit` changed the text of its packages. Its
/// functions trap; nothing runs them here.
pub(crate) fn component(world: &str, edit: impl Fn(&str, &str) -> String) -> Vec<u8> {
    let mut resolve = Resolve::default();
    for source in SOURCES {
        let text = edit(source.package, source.text);
        resolve.push_source(source.file, &text).expect("the altered contract is WIT");
    }
    let mut packages = resolve.packages.iter();
    let world = packages.find_map(|(_, package)| package.worlds.get(world).copied()).expect("the world is there");
    let mut module = dummy_module(&resolve, world, ManglingAndAbi::Standard32);
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).expect("metadata fits");
    ComponentEncoder::default().validate(true).module(&module).expect("a module").encode().expect("a component")
}

fn diff(wanted: World, edit: impl Fn(&str, &str) -> String) -> Vec<String> {
    let (resolve, id) = decode(&component(wanted.name(), edit)).expect("decodes");
    structural_diff(&resolve, id, wanted)
}

/// Replaces `from` in one package and says so when it is not there.
fn replace(package: &'static str, from: &'static str, to: &'static str) -> impl Fn(&str, &str) -> String {
    move |name, text| {
        if name != package {
            return text.to_owned();
        }
        assert!(text.contains(from), "{package} no longer has {from:?}");
        text.replace(from, to)
    }
}

#[test]
fn a_component_of_our_own_contract_has_no_differences() {
    for world in World::ALL {
        assert_eq!(diff(world, |_, text| text.to_owned()), Vec::<String>::new());
    }
}

#[test]
fn a_changed_parameter_is_named_with_both_types() {
    let lines = diff(World::Transform, replace("noetl:kv", "get: func(key: string)", "get: func(key: u32)"));
    assert_eq!(lines, ["noetl:kv/kv@0.1.0: function `get` has parameter `key: u32`, the host has `key: string`"]);
}

#[test]
fn changed_types_are_named_by_their_parts() {
    let field = diff(World::Transform, replace("noetl:kv", "version: u64,", "version: string,"));
    assert_eq!(field, ["noetl:kv/kv@0.1.0: type `entry` has field `version: string`, the host has `version: u64`"]);
    let case = diff(World::Transform, replace("noetl:log", "        warn,\n", ""));
    assert_eq!(
        case,
        [
            "noetl:log/log@0.1.0: type `level` has case `error`, the host has `warn`",
            "noetl:log/log@0.1.0: type `level` has no case `error`, the host has",
        ]
    );
    let extra = diff(World::Tool, replace("noetl:http-client", "status: u16,\n", "status: u16,\n reason: string,\n"));
    assert!(extra[0].contains("type `response` has field `reason: string`"), "{extra:?}");
    let kind = diff(
        World::Transform,
        replace("noetl:metrics", "type label = tuple<string, string>;", "type label = tuple<string, u64>;"),
    );
    assert!(kind.iter().any(|line| line.contains("labels: list<tuple<string, u64>>")), "{kind:?}");
}

#[test]
fn a_result_and_an_unknown_function_are_named() {
    let result = diff(World::Transform, replace("noetl:clock", "now: func() -> u64", "now: func() -> string"));
    assert_eq!(result, ["noetl:clock/clock@0.1.0: function `now` returns `string`, the host returns `u64`"]);
    let unknown = diff(World::Transform, replace("noetl:clock", "monotonic:", "ticks:"));
    let wanted = "noetl:clock/clock@0.1.0: function `ticks` is not one that the host has: it has now, monotonic";
    assert_eq!(unknown, [wanted]);
    let method = diff(World::Tool, replace("noetl:payload", "size: func() -> u64;", "size: func() -> u32;"));
    assert!(method[0].contains("function `[method]payload.size` returns `u32`"), "{method:?}");
}

#[test]
fn a_version_the_host_does_not_have_is_named_with_those_it_has() {
    let lines = diff(World::Transform, |_, text| {
        text.replace("noetl:kv@0.1.0", "noetl:kv@0.3.0").replace("noetl:kv/kv@0.1.0", "noetl:kv/kv@0.3.0")
    });
    assert_eq!(lines, ["imports noetl:kv/kv@0.3.0, the host has 0.1.0"]);
    // A patch version is on the host's track, so its shape decides.
    let patch = |_: &str, text: &str| {
        text.replace("noetl:kv@0.1.0", "noetl:kv@0.1.9")
            .replace("noetl:kv/kv@0.1.0", "noetl:kv/kv@0.1.9")
            .replace("    list-keys:", "    count: func() -> u64;\n    list-keys:")
    };
    let lines = diff(World::Transform, patch);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("noetl:kv/kv@0.1.9: function `count` is not one that the host's 0.1.0 has"));
}

#[test]
fn exports_are_held_against_the_world() {
    let (resolve, id) = decode(&component("transform", |_, text| text.to_owned())).expect("decodes");
    let missing = export_differences(&resolve, id, World::Tool);
    assert_eq!(
        missing,
        ["missing export `call`: a tool exports `call: func(request: request) -> result<response, failure>`"]
    );
    let wrong =
        diff(World::Transform, replace("noetl:worlds", "run: func(input: list<u8>)", "run: func(input: string)"));
    assert_eq!(wrong, ["export `run` has parameter `input: string`, the world has `input: list<u8>`"]);
}

#[test]
fn a_requirement_the_host_does_not_meet_is_named() {
    let manifest = |requirement: &str| {
        let text = format!(
            "path = \"a/b\"\nversion = \"1.0.0\"\nworld = \"transform\"\n[contract]\n\"noetl:kv\" = \"{requirement}\"\n"
        );
        Manifest::parse(&text).expect("complete")
    };
    assert_eq!(unmet_requirements(&manifest("0.1")), Vec::<String>::new());
    assert_eq!(unmet_requirements(&manifest("0.2")), ["the plugin needs noetl:kv ^0.2, the host has 0.1.0"]);
}
