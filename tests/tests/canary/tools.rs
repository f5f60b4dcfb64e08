//! Ways by the tools that are not `http`: a secret as a login that is refused, as data of a database or a NATS server that is
//! read or is part of an error, and as a placeholder in the hands of code.

use serde_json::{Value, json};

use crate::ways::SECRET;

pub const WAYS: [&str; 23] = [
    "pg_refused",
    "pg_literal",
    "pg_parameter",
    "pg_error",
    "pg_twice",
    "pg_select",
    "sqlite_literal",
    "nats_refused",
    "nats_by_hand",
    "nats_value",
    "nats_object",
    "python_given",
    "python_printed",
    "python_raised",
    "python_web",
    "javascript_thrown",
    "javascript_web",
    "artifact_kept",
    "artifact_read",
    "shell_off",
    "transfer_web",
    "transfer_rows",
    "transfer_refused",
];

/// Ways whose result is too large for an event, or is asked for by reference.
pub const BY_REFERENCE: [&str; 2] = ["pg_large", "nats_reference"];

const WEB: &str = "\
import urllib.request
answer = urllib.request.urlopen(url + '/echo?secret=' + secret).read().decode()
print(answer)
raise RuntimeError(answer)
";

/// Every way a value can be written in a row.
const ALL_OF_IT: &str = "SELECT secret, 'x' || secret || 'y' AS part, json_build_object(secret, ARRAY[secret, NULL]) AS nested, \
     ARRAY[secret] AS list, convert_to(secret, 'UTF8') AS bytes, encode(convert_to('a' || secret, 'UTF8'), 'base64') AS \
     encoded FROM planted WHERE alias = $1";

pub fn tool(way: &str) -> Value {
    let pg = |query: &str| json!({"kind": "postgres", "auth": "pg", "query": query, "params": ["{{ alias }}"]});
    let nats = |operation: Value| {
        let mut tool = json!({"kind": "nats", "auth": "nats", "bucket": "planted"});
        tool.as_object_mut().expect("an object").extend(operation.as_object().cloned().expect("an object"));
        tool
    };
    let code =
        |kind: &str, code: &str| json!({"kind": kind, "code": code, "input": {"secret": SECRET, "url": "{{ url }}"}});
    match way {
        "pg_refused" => json!({"kind": "postgres", "auth": "pg-{{ alias }}", "query": "SELECT 1"}),
        "pg_literal" => json!({"kind": "postgres", "auth": "pg", "query": format!("SELECT '{SECRET}'::int")}),
        "pg_parameter" => {
            json!({"kind": "postgres", "auth": "pg", "query": "SELECT $1::text AS given, $1::text::int AS failing",
                   "params": [SECRET]})
        }
        "pg_error" => pg("SELECT secret::int FROM planted WHERE alias = $1"),
        "pg_twice" => {
            pg("INSERT INTO planted (alias, secret) SELECT alias || '!', secret FROM planted WHERE alias = $1")
        }
        "pg_select" => pg(ALL_OF_IT),
        "pg_large" => pg("SELECT secret, repeat('x', 1000) AS filling FROM planted, generate_series(1, 5000) \
                          WHERE alias = $1"),
        "sqlite_literal" => {
            json!({"kind": "sqlite", "command": format!("SELECT '{SECRET}'; SELECT * FROM \"{SECRET}\"")})
        }
        "nats_refused" => {
            json!({"kind": "nats", "auth": "nats-{{ alias }}", "operation": "kv_keys", "bucket": "planted"})
        }
        // Refused before anything is sent: a secret goes with the credential it is part of.
        "nats_by_hand" => json!({"kind": "nats", "url": "{{ nats_url }}", "user": "someone", "password": SECRET,
                                 "operation": "kv_keys", "bucket": "planted"}),
        "nats_value" => nats(json!({"operation": "kv_get", "key": "{{ alias }}"})),
        "nats_object" => nats(json!({"operation": "object_get", "name": "{{ alias }}", "encoding": "base64"})),
        "nats_reference" => nats(json!({"operation": "object_get", "name": "{{ alias }}", "encoding": "reference"})),
        "python_given" => code("python", "result = [secret, len(secret), secret.split('~'), input_data]"),
        "python_printed" => code("python", "print(secret)\nprint(secret, file=sys.stderr)"),
        "python_raised" => code("python", "raise ValueError('no luck with ' + secret)"),
        "python_web" => code("python", WEB),
        "javascript_thrown" => code("javascript", "console.log(secret);\nthrow new Error(`no luck with ${secret}`);"),
        "javascript_web" => {
            let web = "const answer = noetl.http.get(url + '/echo?secret=' + secret).text();\n\
                       console.log(answer);\nthrow new Error(answer);";
            code("javascript", web)
        }
        "artifact_kept" => json!({"kind": "artifact", "action": "put", "value": {"deep": [SECRET]}}),
        "artifact_read" => json!([
            {"name": "fetch", "kind": "http", "url": format!("{{{{ url }}}}/large?secret={SECRET}"),
             "response_type": "binary"},
            {"name": "read", "kind": "artifact", "result_ref": "{{ fetch._ref }}", "encoding": "text"},
        ]),
        // The answer's fields are no columns of the table, and the rows' keys are there already.
        "transfer_web" => {
            json!({"kind": "transfer", "target": {"type": "postgres", "auth": "pg", "table": "planted"},
                   "source": {"type": "http", "url": format!("{{{{ url }}}}/echo?secret={SECRET}")}})
        }
        "transfer_rows" => {
            let query = "SELECT alias, secret FROM planted WHERE alias = :alias";
            json!({"kind": "transfer", "target": {"type": "postgres", "auth": "pg", "table": "planted"},
                   "source": {"type": "postgres", "auth": "pg", "query": query, "params": {"alias": "{{ alias }}"}}})
        }
        "transfer_refused" => {
            json!({"kind": "transfer", "source": {"type": "postgres", "auth": "pg", "query": "SELECT alias FROM planted"},
                   "target": {"type": "postgres", "auth": "pg-{{ alias }}", "table": "planted"}})
        }
        "shell_off" => json!({"kind": "shell", "command": ["echo", SECRET]}),
        other => panic!("{other} is no way"),
    }
}
