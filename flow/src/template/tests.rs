//! What the language means, as tables.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::event::Reference;

fn context() -> Context {
    let names = json!({
        "n": 7, "big": 18_446_744_073_709_551_615u64, "neg": -3, "half": 0.5, "one": 1.0, "yes": true, "nil": null,
        "name": "ada", "quote": "it's", "list": [1, 2, 3], "empty": [], "text": "", "code": "007",
        "map": {"b": 1, "a": {"x": [10, 20]}}, "rows": [{"id": 1}, {"id": 2}], "html": "<a href='x'>&</a>",
        "workload": {"url": "http://x"}, "iter": {"item": 5}, "job": {"uuid": "9"}, "execution_id": "9",
    });
    Context::from_map(1_700_000_000_000, names.as_object().expect("an object"))
}

fn render(text: &str) -> Json {
    match Templates::new().render_json(&json!(text), &context()) {
        Ok(json) => json,
        Err(error) => panic!("{text}: {error}"),
    }
}

fn fails(text: &str) -> RenderError {
    match Templates::new().render_json(&json!(text), &context()) {
        Ok(json) => panic!("{text} gave {json}"),
        Err(error) => error,
    }
}

#[test]
fn a_lone_expression_keeps_its_type_and_text_stays_text() {
    for (text, expected) in [
        ("{{ n }}", json!(7)),
        ("{{ big }}", json!(18_446_744_073_709_551_615u64)),
        ("{{ neg }}", json!(-3)),
        ("{{ half }}", json!(0.5)),
        ("{{ one }}", json!(1.0)),
        ("{{ yes }}", json!(true)),
        ("{{ nil }}", json!(null)),
        ("{{ missing }}", json!(null)),
        ("{{ missing.x.y[3].z }}", json!(null)),
        ("{{ name.x.y }}", json!(null)),
        ("{{ list }}", json!([1, 2, 3])),
        ("{{ map }}", json!({"b": 1, "a": {"x": [10, 20]}})),
        ("{{ map.a.x[1] }}", json!(20)),
        ("{{ map['a'][\"x\"].0 }}", json!(10)),
        ("  {{ list }}\n", json!([1, 2, 3])),
        ("{{ n + 1 }}", json!(8)),
        ("{{ {'a': {'b': n}} }}", json!({"a": {"b": 7}})),
        ("{{ '}}' }}", json!("}}")),
        ("{{ [n, nil, missing] }}", json!([7, null, null])),
        ("{{ 'a' if n > 3 else 'b' }}", json!("a")),
        ("{{ range(3) }}", json!([0, 1, 2])),
        ("{{ code }}", json!("007")),
        ("007", json!("007")),
        ("true", json!("true")),
        ("", json!("")),
        ("{ {n} }", json!("{ {n} }")),
        ("{{ never closed", json!("{{ never closed")),
        ("n={{ n }}", json!("n=7")),
        ("{{ n }}{{ n }}", json!("77")),
        ("{{ n }}\n\n{{ neg }}\n", json!("7\n\n-3\n")),
        ("[{{ nil }}|{{ missing.x }}|{{ yes }}|{{ one }}]", json!("[||true|1.0]")),
        ("x {{ map }}", json!(r#"x {"b":1,"a":{"x":[10,20]}}"#)),
        ("a {{- n -}} b", json!("a7b")),
        ("{# note #}{{ n }}", json!(7)),
        ("${#array[@]} {{ n }}", json!("${#array[@]} 7")),
        ("{% raw %}{{ n }}{% endraw %}", json!("{{ n }}")),
        ("{% if n > 3 %}big{% elif n %}some{% else %}none{% endif %}", json!("big")),
        ("{% for r in rows %}({{ r.id }}){% if not loop.last %},{% endif %}{% endfor %}\n", json!("(1),(2)\n")),
        ("{% set x = n + 1 %}{{ x }}", json!("8")),
        ("{{ ctx.map.b }}", json!(1)),
        ("{{ ctx['name'] }}", json!("ada")),
        ("{{ ctx.ctx.n }}", json!(7)),
        ("{{ workload.url }}/{{ job.uuid }}/{{ execution_id }}/{{ iter.item }}", json!("http://x/9/9/5")),
        ("{{ now() }}", json!("2023-11-14T22:13:20.000Z")),
    ] {
        assert_eq!(render(text), expected, "{text}");
    }
}

#[test]
fn filters_do_what_playbooks_expect_of_them() {
    for (text, expected) in [
        ("{{ '42' | int }}", json!(42)),
        ("{{ ' -7 ' | int }}", json!(-7)),
        ("{{ '12.9' | int }}", json!(12)),
        ("{{ 12.9 | int }}", json!(12)),
        ("{{ 'x' | int }}", json!(0)),
        ("{{ missing.y | int }}", json!(0)),
        ("{{ nil | int }}", json!(0)),
        ("{{ yes | int }}", json!(1)),
        ("{{ 'x' | int(5) }}", json!(5)),
        ("{{ big | int }}", json!(18_446_744_073_709_551_615u64)),
        ("{{ '18446744073709551615' | int }}", json!(18_446_744_073_709_551_615u64)),
        ("{{ '1.5' | float }}", json!(1.5)),
        ("{{ n | float }}", json!(7.0)),
        ("{{ 'x' | float }}", json!(0.0)),
        ("{{ missing | default(3) }}", json!(3)),
        ("{{ nil | default([]) }}", json!([])),
        ("{{ text | default('x') }}", json!("")),
        ("{{ text | default('x', true) }}", json!("x")),
        ("{{ missing | d }}", json!("")),
        ("{{ 0 | d(5) }}", json!(0)),
        ("{{ 0 | default(5, boolean=true) }}", json!(5)),
        ("{{ 'x' | int(default=5) }}{{ 'x' | float(default=1) }}", json!("51")),
        ("{{ map | tojson }}", json!({"b": 1, "a": {"x": [10, 20]}})),
        ("{{ list|to_json() }}", json!([1, 2, 3])),
        ("{{ n | tojson }}", json!(7)),
        ("{{ html | tojson }}", json!(r#""<a href='x'>&</a>""#)),
        ("{{ missing | tojson }}", json!(null)),
        ("{{ [1] | tojson(indent=1) }}", json!("[\n 1\n]")),
        ("{{ [1] | to_nice_json }}", json!("[\n    1\n]")),
        ("{{ map | tojson | length }}", json!(25)),
        ("{{ map | tojson }};", json!(r#"{"b":1,"a":{"x":[10,20]}};"#)),
        ("{{ (map | tojson) }}", json!(r#"{"b":1,"a":{"x":[10,20]}}"#)),
        ("{{ '{\"a\": [1]}' | fromjson }}", json!({"a": [1]})),
        ("{{ quote | replace(\"'\", \"''\") }}", json!("it''s")),
        ("{{ map | tojson | replace('\"', \"'\") }}", json!("{'b':1,'a':{'x':[10,20]}}")),
        ("{{ 'żółw' | length }}", json!(4)),
        ("{{ list | len }}", json!(3)),
        ("{{ map | length }}", json!(2)),
        ("{{ missing | length }}", json!(0)),
        ("{{ 'ADA' | lower }}{{ 'x' | upper }}", json!("adaX")),
        ("{{ yes | string | lower }}", json!("true")),
        ("{{ n | string }}", json!("7")),
        ("{{ missing | lower }}", json!("")),
        ("{{ ' x ' | trim }}", json!("x")),
        ("{{ 'a,b,c' | split(',') }}", json!(["a", "b", "c"])),
        ("{{ 'a,b,c' | split(',', 1) }}", json!(["a", "b,c"])),
        ("{{ ' a  b' | split }}", json!(["a", "b"])),
        ("{{ list | join('-') }}", json!("1-2-3")),
        ("{{ missing | join(',') }}", json!("")),
        ("{{ list | first }}{{ list | last }}", json!("13")),
        ("{{ empty | first }}", json!(null)),
        ("{{ (empty | last) is defined }}", json!(false)),
        ("{{ map | keys }}", json!(["b", "a"])),
        ("{{ map | values | first }}", json!(1)),
        ("{{ map | items | first }}", json!(["b", 1])),
        ("{{ map | get('b') }}", json!(1)),
        ("{{ map | get('z', 9) }}", json!(9)),
        ("{{ name | b64encode }}", json!("YWRh")),
        ("{{ 'YWRh' | b64decode }}", json!("ada")),
        ("{{ html | safe }}", json!("<a href='x'>&</a>")),
        ("{{ html }}!", json!("<a href='x'>&</a>!")),
        ("{{ 'a\nb' | indent(2) }}", json!("a\n  b")),
        ("{{ '%s=%03d' | format(name, n) }}", json!("ada=007")),
        ("{{ rows | map(attribute='id') | list }}", json!([1, 2])),
        ("{{ rows | selectattr('id', 'gt', 1) | list }}", json!([{"id": 2}])),
        (
            "{{ nil is none }}{{ nil is defined }}{{ missing is defined }}{{ missing is none }}",
            json!("truetruefalsefalse"),
        ),
        ("{{ 'a' in 'cat' and 2 in list and 'b' in map }}", json!(true)),
        ("{{ 'aaa' | replace('a', 'b', 2) }}{{ 'aa' | replace('a', 'b', count=1) }}", json!("bbaba")),
        ("{{ rows | join(',', attribute='id') }}{{ rows | sum(attribute='id') }}", json!("1,23")),
        ("{{ rows | groupby('id') | length }}{{ rows | rejectattr('id', 'eq', 1) | list | length }}", json!("21")),
        ("{{ 7.256 | round(2) }}{{ '2' | int | abs }}{{ list | max }}", json!("7.2623")),
        ("{{ {'a': 1} | combine({'b': 2}, {'a': 3}) }}", json!({"a": 3, "b": 2})),
        ("{{ {'a': 1} | dict2items }}", json!([{"key": "a", "value": 1}])),
        ("{{ [{'key': 'a', 'value': 1}] | items2dict }}", json!({"a": 1})),
        ("{{ [1, [2, [3]]] | flatten }}", json!([1, 2, 3])),
        ("{{ [1, [2, [3]]] | flatten(levels=1) }}", json!([1, 2, [3]])),
        ("{{ now() | strftime('%Y/%m/%d %H:%M') }}", json!("2023/11/14 22:13")),
        ("{{ 86400 | strftime('%d') }}", json!("02")),
        ("{{ yes | ternary('a', 'b') }}{{ nil | ternary('a', 'b') }}", json!("ab")),
        ("{{ 'one two three four' | truncate(11, leeway=0) }}", json!("one two...")),
        ("{{ 'one two three four' | truncate(9, true, '~', leeway=0) }}", json!("one two ~")),
        ("{{ 'short' | truncate(3) }}", json!("short")),
        ("{{ 'a b/c&d' | urlencode }}", json!("a%20b/c%26d")),
        ("{{ {'q': 'a b', 'n': 1} | urlencode }}", json!("q=a%20b&n=1")),
        ("{{ 'one two' | wordcount }}{{ 'x' | center(3) }}", json!("2 x ")),
    ] {
        assert_eq!(render(text), expected, "{text}");
    }
}

#[test]
fn values_have_the_methods_of_python() {
    for (text, expected) in [
        ("{{ map.get('b') }}", json!(1)),
        ("{{ map.get('z') }}", json!(null)),
        ("{{ map.get('z', 9) }}", json!(9)),
        ("{{ missing.get('z', 9) }}", json!(9)),
        ("{{ map.keys() }}", json!(["b", "a"])),
        ("{{ map.values() | first }}", json!(1)),
        ("{% for k, v in map.items() %}{{ k }}{% endfor %}", json!("ba")),
        ("{{ ' Ada '.strip() }}{{ 'xax'.strip('x') }}{{ 'xa'.lstrip('x') }}{{ 'ax'.rstrip('x') }}", json!("Adaaaa")),
        (
            "{{ name.upper() }}{{ 'ADA'.lower() }}{{ 'ada love'.title() }}{{ 'aDA'.capitalize() }}",
            json!("ADAadaAda LoveAda"),
        ),
        ("{{ 'a,b,c'.split(',') }}", json!(["a", "b", "c"])),
        ("{{ 'a,b,c'.split(',', 1) }}", json!(["a", "b,c"])),
        ("{{ 'a\nb'.splitlines() }}", json!(["a", "b"])),
        ("{{ ', '.join(list) }}", json!("1, 2, 3")),
        ("{{ 'aaa'.replace('a', 'b') }}{{ 'aaa'.replace('a', 'b', 1) }}", json!("bbbbaa")),
        ("{{ name.startswith('a') }}{{ name.endswith(['x', 'a']) }}{{ name.startswith('x') }}", json!("truetruefalse")),
        (
            "{{ name.find('d') }}{{ name.find('x') }}{{ name.count('a') }}{{ list.count(2) }}{{ list.index(3) }}",
            json!("1-1212"),
        ),
        ("{{ 'pre_x'.removeprefix('pre_') }}{{ 'x.py'.removesuffix('.py') }}", json!("xx")),
        ("{{ '7'.zfill(3) }}{{ '-7'.zfill(3) }}{{ code.isdigit() }}{{ name.isdigit() }}", json!("007-07truefalse")),
        ("{{ '{} and {}'.format(n, name) }}{{ '{1}{0}'.format('a', 'b') }}", json!("7 and adaba")),
    ] {
        assert_eq!(render(text), expected, "{text}");
    }
    for (text, part) in [
        ("{{ name.nosuch() }}", "no method named nosuch"),
        ("{{ list.append(1) }}", "no method named append"),
        ("{{ '{:.2f}'.format(n) }}", "filter `format`"),
        ("{{ list.index(9) }}", "not in the list"),
        ("{{ name.zfill(1000000) }}", "more than"),
    ] {
        let error = fails(text);
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
}

#[test]
fn secrets_are_placeholders_and_stay_text() {
    for (text, expected) in [
        ("{{ keychain.pg.password }}", "NOETL~SECRET~pg~password~END"),
        ("{{ keychain['my-key'].token }}", "NOETL~SECRET~my-key~token~END"),
        ("Bearer {{ keychain.a.token }}", "Bearer NOETL~SECRET~a~token~END"),
        ("{{ 'Bearer ' ~ keychain.a.token }}", "Bearer NOETL~SECRET~a~token~END"),
        ("{% if n %}{{ keychain.a.token }}{% endif %}", "NOETL~SECRET~a~token~END"),
        ("{{ token('google oauth') }}", "NOETL~SECRET~google.20oauth~token~END"),
    ] {
        assert_eq!(render(text), json!(expected), "{text}");
    }
}

#[test]
fn a_playbooks_declarations_decide_what_a_name_stands_for() {
    let fields = [("key".to_owned(), "api_key".to_owned())].into();
    let declared: crate::keychain::Keychain =
        [("ai".to_owned(), crate::keychain::Declared { credential: "openai".to_owned(), fields })].into();
    let context = Context::new(0).with([(KEYCHAIN, keychain(&declared))]);
    let render = |text: &str| Template::compile(text).expect("compiles").render_json(&context).expect("renders");
    assert_eq!(render("{{ keychain.ai.key }}"), json!("NOETL~SECRET~openai~api_key~END"));
    assert_eq!(render("{{ keychain.other.key }}"), json!("NOETL~SECRET~other~key~END"));
    let context = Context::sealed(0, Some("a seal")).with([(KEYCHAIN, keychain(&declared))]);
    let render = |text: &str| Template::compile(text).expect("compiles").render_json(&context).expect("renders");
    let tagged = |alias: &str, field: &str| json!(crate::keychain::placeholder(Some("a seal"), alias, field));
    assert_eq!(render("{{ keychain.ai.key }}"), tagged("openai", "api_key"));
    assert_eq!(render("{{ keychain.other.key }}"), tagged("other", "key"));
    assert_eq!(render("{{ token('ai') }}"), tagged("ai", "token"), "an alias is no name of a declaration");
    assert!(!format!("{context:?} {:?}", context.get(KEYCHAIN)).contains("a seal"));
}

#[test]
fn what_cannot_be_rendered_is_an_error_that_names_the_template() {
    for (text, part) in [
        ("{{ n + }}", "syntax error"),
        ("a\nb {{ n | nosuch }}", "unknown filter"),
        ("{{ nosuch() }}", "unknown function"),
        ("{{ missing + 1 }}", "undefined"),
        ("{{ 'x' | fromjson }}", "not JSON"),
        ("{{ '?' | b64decode }}", "not base64"),
        ("{{ keychain.pg }}", "name a field of it"),
        ("x {{ keychain.pg }}", "name a field of it"),
        ("{{ keychain | tojson }}", "name a field of it"),
        ("{{ n }} {{ }", "never closed"),
        ("{% if n %}{{ n }}", "syntax error"),
        ("{{ n }}{% raw %}", "never closed by `endraw`"),
        ("{{ namespace(a=1) }}", "unknown function"),
        ("{{ 99999999999999999999999999999999 }}", "JSON can hold"),
    ] {
        let error = fails(text);
        assert!(error.to_string().contains(part), "{text}: {error}");
        assert!(error.to_string().contains(&error::shorten(text)), "{error}");
    }
    assert_eq!(fails("a\nb {{ n | nosuch }}").line, Some(2));
    assert_eq!(check("a\nb {{ n + }}").map_err(|text| text.contains("line 2")), Err(true));
    assert_eq!(check("{{ n }} and {{"), Err("`{{` is never closed by `}}`".to_owned()));
    assert_eq!(check("plain {{"), Ok(()));
    assert!(fails(&format!("{{{{ n | nosuch('{}') }}}}", "x".repeat(500))).to_string().len() < 300);
}

#[test]
fn a_template_that_wants_too_much_is_stopped() {
    let endless = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
    let sum = "{% for a in range(9999) %}{% for b in range(9999) %}{{ a + b }}{% endfor %}{% endfor %}";
    for text in [endless, sum] {
        assert_eq!(fails(text).cause, Cause::Fuel, "{text}");
    }
    for text in [
        "x{{ 'y' * 2000000 }}",
        "{% for i in range(2000) %}{{ 'y' * 1000 }}{% endfor %}",
        "x{{ ['y'] * 2000000 }}",
        "{{ ('y' * 1000) | replace('y', 'z' * 2000) }}",
        "{{ (['y'] * 2000000) | join }}",
        "{{ ('a\n' * 1000) | indent(9999) }}",
    ] {
        assert_eq!(fails(text).cause, Cause::Text, "{text}");
    }
    for text in ["{{ [['y' * 1000] * 1000] * 1000 }}", "{{ [list] * 50000000 }}"] {
        assert_eq!(fails(text).cause, Cause::Value, "{text}");
    }
    for text in ["{{ range(1000000) }}", "{{ [1] | batch(1000000000, 1) }}", "{{ '%99999d' | format(1) }}"] {
        assert!(matches!(fails(text).cause, Cause::Failed(_)), "{text}");
    }
}

#[test]
fn guards_hold_as_playbooks_expect() {
    let templates = Templates::new();
    for (when, expected) in [
        (json!(true), true),
        (json!(false), false),
        (json!(null), false),
        (json!(0), false),
        (json!(2), true),
        (json!(""), false),
        (json!("{{ yes }}"), true),
        (json!("{{ n > 3 and name == 'ada' }}"), true),
        (json!("n > 3"), true),
        (json!("not yes"), false),
        (json!("missing.x"), false),
        (json!("off"), false),
        (json!("{{ nil }}"), false),
        (json!("{{ empty }}"), false),
        (json!("{{ {} }}"), false),
        (json!("{{ list }}"), true),
        (json!("{{ 'No' }}"), false),
        (json!("{{ ' FALSE ' }}"), false),
        (json!("{{ 'null' }}"), false),
        (json!("{{ '0' }}"), false),
        (json!("{{ '[]' }}"), false),
        (json!("{{ 0.0 }}"), false),
        (json!("{{ 'nope' }}"), true),
        (json!("{% if n > 3 %}true{% endif %}"), true),
        (json!("{% if n < 3 %}true{% endif %}"), false),
        (json!("{{ yes }}{{ yes }}"), true),
    ] {
        assert_eq!(templates.truthy(&when, &context()), Ok(expected), "{when}");
    }
    assert!(templates.truthy(&json!("n +"), &context()).is_err());
    assert!(templates.truthy(&json!("{{ missing + 1 }}"), &context()).is_err());
    assert!(check_guard(&json!("n ==")).is_err());
    assert_eq!(check_guard(&json!("n == 1")), Ok(()));
}

#[test]
fn trees_render_names_and_values_in_their_order() {
    let tree = json!({"z": "{{ n }}", "{{ name }}_x": ["{{ list }}", {"k": "a{{ n }}"}], "c": {"d": [1, null]}});
    let expected = json!({"z": 7, "ada_x": [[1, 2, 3], {"k": "a7"}], "c": {"d": [1, null]}});
    let compiled = Tree::compile(&tree).expect("it compiles");
    assert_eq!(compiled.render(&context()).expect("it renders").to_string(), expected.to_string());
    assert_eq!(Templates::new().render_json(&tree, &context()), Ok(expected));
    assert!(Tree::compile(&json!({"a": [1, "x"]})).expect("it compiles").is_constant());
    assert!(!Tree::compile(&json!({"{{ n }}": 1})).expect("it compiles").is_constant());
    assert!(Tree::compile(&json!({"a": ["{{ n + }}"]})).is_err());
}

#[test]
fn layers_hide_and_share_names() {
    let below = context();
    let above = below.with([("n", Value::from(1)), ("extra", Value::from("e"))]);
    let render = |context: &Context, text: &str| Templates::new().render_json(&json!(text), context).expect("renders");
    assert_eq!(render(&above, "{{ n }}{{ ctx.n }}{{ extra }}{{ name }}"), json!("11eada"));
    assert_eq!(render(&below, "{{ n }}{{ extra }}"), json!("7"));
    assert_eq!(render(&above, "{{ ctx | length }}"), json!(21));
    assert_eq!(render(&above, "{{ ctx }}")["extra"], json!("e"));
    assert_eq!(render(&above, "{{ ctx[name] is defined }}"), json!(false));
    assert_eq!(render(&below.with([("ada", Value::from(3))]), "{{ ctx[name] }}"), json!(3));
}

#[test]
fn each_result_of_a_loop_over_a_pipeline_is_a_pipelines() {
    let results = json!([{"a": {"score": 5}, "b": {"saved": true}}, {"a": {"score": 7}, "b": null}]);
    let data = json!({"results": results, "data": results, "stats": {"total": 2}, "count": 2});
    let each = Reading { each: true, ..Reading::default() };
    let context = Context::new(0).with([
        ("each", read_value(&data, &each)),
        ("moved", read_value(&json!({"stats": {"total": 2}, "results": "x"}), &each)),
        ("plain", step_value(&data, false, None)),
    ]);
    for (text, expected) in [
        ("{{ each.results[0].score }}{{ each.data[1].score }}{{ each.results[0].b.saved }}", json!("57true")),
        ("{{ each.data.results[1].score }}{{ each.result.data[0].score }}", json!("75")),
        ("{{ each.results | length }}{{ each.data.stats.total }}{{ each.results[5] is defined }}", json!("22false")),
        ("{% for one in each.data %}{{ one.score }}{% endfor %}", json!("57")),
        ("{{ each.data[-1].score }}{{ (each.data | first).saved }}", json!("7true")),
        (
            "{{ each.data }}",
            json!([
                {"a": {"score": 5}, "b": {"saved": true}, "score": 5, "saved": true},
                {"a": {"score": 7}, "b": null, "score": 7},
            ]),
        ),
        ("{{ moved.stats.total }}{{ moved.results }}", json!("2x")),
        ("{{ plain.results[0].score is defined }}", json!(false)),
    ] {
        let got = Templates::new().render_json(&json!(text), &context);
        assert_eq!(got.map_err(|error| error.to_string()), Ok(expected), "{text}");
    }
}

#[test]
fn a_payload_is_in_the_store_that_was_asked_for_or_in_one_of_its_size() {
    for (size, store, expected) in
        [(9, None, "kv"), (2 << 20, None, "disk"), (2 << 20, Some("auto"), "disk"), (9, Some("gcs"), "gcs")]
    {
        let reference = Reference { sha256: "ab".repeat(32), size };
        let reading = Reading { reference: Some(&reference), store, ..Reading::default() };
        let context = Context::new(0).with([("kept", read_value(&json!({"x": 1}), &reading))]);
        assert_eq!(Templates::new().render_json(&json!("{{ kept._store }}"), &context), Ok(json!(expected)), "{size}");
    }
}

#[test]
fn results_of_steps_are_read_in_all_spellings() {
    let reference = Reference { sha256: "ab".repeat(32), size: 9 };
    let pipeline = json!({"get": {"id": 1, "page": 2}, "put": {"id": 3}, "n": 4});
    let by_shape = Reading { pipeline: true, by_shape: true, ..Reading::default() };
    let context = Context::new(0).with([
        ("plain", step_value(&json!({"x": 1, "in": {"y": 2}}), false, None)),
        ("http", step_value(&json!({"status_code": 200, "data": {"x": 5}}), false, None)),
        ("list", step_value(&json!([4, 5]), false, None)),
        ("text", step_value(&json!("t"), false, None)),
        ("pipe", step_value(&pipeline, true, None)),
        ("web", step_value(&json!({"get": {"data": {"x": 6}}}), true, None)),
        ("again", step_value(&json!({"load": {"make": {"items": [7], "n": 2}}}), true, None)),
        ("kid", read_value(&json!({"user": {"id": 3, "data": {"x": 8}}, "order": {"result": 9}}), &by_shape)),
        ("large", step_value(&json!({"x": 1, "_truncated": true}), false, Some(&reference))),
    ]);
    for (text, expected) in [
        ("{{ plain.x }}{{ plain.data.x }}{{ plain.result.x }}{{ plain.result.data.in.y }}", json!("1112")),
        ("{{ plain }}", json!({"x": 1, "in": {"y": 2}})),
        ("{{ plain | length }}", json!(2)),
        ("{{ plain.data.data is defined }}", json!(false)),
        ("{{ plain.page is defined }}{{ plain.y is defined }}", json!("falsefalse")),
        ("{{ http.data.x }}{{ http.result.data.x }}", json!("55")),
        ("{{ list[1] }}{{ list.data[0] }}{{ list | length }}", json!("542")),
        ("{{ list }}", json!([4, 5])),
        ("{% for x in list %}{{ x }}{% endfor %}", json!("45")),
        ("{{ text }}", json!("t")),
        (
            "{{ pipe.get.id }}{{ pipe.id }}{{ pipe.page }}{{ pipe.results.put.id }}{{ pipe.data.get.page }}",
            json!("13232"),
        ),
        ("{{ pipe }}", json!({"get": {"id": 1, "page": 2}, "put": {"id": 3}, "n": 4, "id": 3, "page": 2})),
        ("{{ pipe | length }}", json!(5)),
        ("{{ pipe.results }}", pipeline.clone()),
        ("{{ pipe.data.id }}{{ 'page' in pipe.data }}{{ pipe.data.n }}", json!("3true4")),
        ("{{ web.data.x }}{{ web.get.data.x }}", json!("66")),
        (
            "{{ again.items[0] }}{{ again.data['items'][0] }}{{ 'items' in again }}{{ again.load.make.n }}",
            json!("77true2"),
        ),
        ("{{ kid.data.user.id }}{{ kid.result.user.id }}{{ kid.data.user.data.x }}{{ kid.id }}", json!("3383")),
        ("{{ large._ref }}", json!(format!("noetl://payload/{}", "ab".repeat(32)))),
        ("{{ large._ref is defined }}{{ plain._ref is defined }}{{ large._store }}", json!("truefalsekv")),
    ] {
        let got = Templates::new().render_json(&json!(text), &context);
        assert_eq!(got.map_err(|error| error.to_string()), Ok(expected), "{text}");
    }
}

#[test]
fn references_are_found_and_none_is_left_out() {
    for (text, expected) in [
        ("{{ fetch.data.rows }}", vec!["fetch.data.rows"]),
        ("{{ ctx.fetch.data }} {{ workload.url }}", vec!["fetch.data", "workload.url"]),
        ("{{ rows[0].id }}{{ rows['a b'].c }}", vec!["rows.0.id", "rows.a b.c"]),
        ("{{ rows[i].id }}", vec!["i", "rows"]),
        ("{{ rows[1:n] }}", vec!["n", "rows"]),
        ("{{ (fetch).rows }}", vec!["fetch"]),
        ("{{ fetch | default(other.x) | tojson }}", vec!["fetch", "other.x"]),
        ("{{ a is defined and b is not none or not c in d }}", vec!["a", "b", "c", "d"]),
        ("{{ x if y else z }}", vec!["x", "y", "z"]),
        ("{{ {'k': v, w: 1} }}", vec!["v", "w"]),
        ("{{ rows | map(attribute='id') | sort(reverse=flag) }}", vec!["flag", "rows"]),
        ("{{ 'ctx.no' ~ \"it's {{ no }}\" ~ yes }}", vec!["yes"]),
        ("{{ now() }}{{ range(n) }}{{ a.b(c) }}", vec!["a", "c", "n"]),
        ("{{ 1e5 + 0xff + a1 }}", vec!["a1"]),
        (
            "{% for r in fetch.rows if r.ok %}{{ r.id }}{{ base }}{% endfor %}",
            vec!["base", "endfor", "fetch.rows", "for", "r", "r.id", "r.ok"],
        ),
        ("{% set x = x + y %}", vec!["set", "x", "y"]),
        ("{{ filter.x }}{{ set }}", vec!["filter.x", "set"]),
        ("text with {braces} and words", vec![]),
        ("{% raw %}{{ no }}{% endraw %}{# {{ no }} #}{{ yes }}", vec!["yes"]),
        ("{{ a\n  .b . c }}", vec!["a.b.c"]),
        ("{{ żółw }}{{ ok }}", vec!["ok", "w"]),
    ] {
        let found = references(text);
        let paths: Vec<String> = found.paths.iter().map(|path| path.join(".")).collect();
        assert_eq!(paths, expected, "{text}");
        assert!(!found.whole_context, "{text}");
    }
    for text in ["{{ ctx }}", "{{ ctx[key] }}", "{{ ctx | tojson }}", "{{ ctx.get('a') }}", "{% set c = ctx %}"] {
        assert!(references(text).whole_context, "{text}");
    }
    let mut found = References::default();
    found.add_json(&json!({"{{ k }}": ["{{ a.b }}", {"x": "{{ a.c }}"}], "n": 1}));
    found.add_guard(&json!("g.x > 1"));
    assert_eq!(found.names().collect::<Vec<_>>(), ["a", "g", "k"]);
}

#[test]
fn a_text_is_compiled_once() {
    let templates = Templates::new();
    let first = templates.template("{{ n + 1 }}").expect("it compiles");
    let again = templates.template("{{ n + 1 }}").expect("it compiles");
    assert!(Arc::ptr_eq(&first, &again));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,80}", code in "[a-c0-9 .|+*'\"\\[\\](){}%#-]{0,40}") {
        let templates = Templates::new();
        for text in [text, format!("{{{{ {code} }}}}"), format!("x{{{{ {code} }}}}y"), format!("{{% {code} %}}")] {
            let _ = templates.render_json(&json!(text), &context());
            let _ = templates.truthy(&json!(text), &context());
            references(&text);
        }
    }

    /// A context of only what is referred to renders like the whole context.
    #[test]
    fn what_is_referred_to_is_enough(code in expression()) {
        let text = format!("{{{{ {code} }}}}");
        let whole = context();
        let found = references(&text);
        prop_assume!(!found.whole_context);
        let needed: Vec<_> = found.names().filter_map(|name| Some((name.to_owned(), whole.get(name)?))).collect();
        let partial = Context::new(whole.time_ms()).with(needed);
        let templates = Templates::new();
        prop_assert_eq!(templates.render_json(&json!(text), &whole), templates.render_json(&json!(text), &partial));
    }

    #[test]
    fn json_survives_the_way_through_a_template(value in json_value()) {
        let context = Context::new(0).with([("x", from_json(&value))]);
        let rendered = Templates::new().render_json(&json!("{{ x }}"), &context).expect("it renders");
        prop_assert_eq!(rendered.to_string(), value.to_string());
    }
}

fn expression() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["n", "list", "map", "rows", "name", "missing", "ctx.map", "nil", "map.a.x"]);
    name.prop_map(str::to_owned).prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), prop::sample::select(vec![".a", "[0]", ".id", "['b']", "[n]", "[0:n]", "[-1]"]))
                .prop_map(|(left, end)| format!("({left}){end}")),
            (inner.clone(), prop::sample::select(vec!["length", "tojson", "string", "default(n)", "first", "list"]))
                .prop_map(|(left, filter)| format!("({left} | {filter})")),
            (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("[{left}, {right}]")),
            (inner.clone(), inner).prop_map(|(left, right)| format!("{left} if {right} is defined else {right}")),
        ]
    })
}

fn json_value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        any::<f64>().prop_filter("JSON has no such number", |number| number.is_finite()).prop_map(Json::from),
        ".{0,20}".prop_map(Json::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::vec((".{0,5}", inner), 0..4)
                .prop_map(|fields| Json::Object(fields.into_iter().collect())),
        ]
    })
}
