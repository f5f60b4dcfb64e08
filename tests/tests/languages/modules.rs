//! Files of JavaScript as modules of each other and of libraries: at a cost that leaves time for work, with bindings that
//! are seen to change, and with the lines of their author.

use serde_json::json;

use super::support::Desk;

const MANIFEST: &str = "path = \"main/j\"\nversion = \"1.0.0\"\nworld = \"tool\"\ncapabilities = [\"log\", \"payload\"]\n\
                        [source]\nlanguage = \"js\"\nentry = \"main.js\"\n";

/// A plugin of these files, pushed.
fn pushed(files: &[(&str, &str)]) -> Desk {
    let desk = Desk::new();
    desk.write("j/plugin.toml", MANIFEST);
    files.iter().for_each(|(name, text)| desk.write(&format!("j/{name}"), text));
    desk.noetl(&["plugin", "push", "j"]).ok();
    desk
}

/// A library of the size that many have, with what could be taken for a statement of a module.
fn library(exported: &str, ends: impl Fn(usize) -> String) -> String {
    let part = |n| {
        format!(
            "/** Don't import this, or `export` it. */\n{exported}function part{n}(a, b) {{\n  \
             return /[\"'/]export /.test(`${{a}} import ${{{{ a }}.a}}`) ? 'no' : a + b * {n} / 2;\n}}\n{}",
            ends(n)
        )
    };
    (0..200).map(part).collect()
}

/// The limits are those that a plugin has that names none.
#[test]
fn a_library_of_many_kilobytes_leaves_time_for_the_call() {
    let common = library("", |n| format!("exports.part{n} = part{n};\n"));
    let module = library("export ", |_| String::new());
    assert!(common.len() > 25_000 && module.len() > 25_000, "{} and {}", common.len(), module.len());
    let main = "import { part2 } from 'common';\nimport { part4 } from 'module';\n\
                export const call = ({ a, b }) => [part2(a, b), part4(a, b)];\n";
    let files = [("main.js", main), ("vendor/common/index.js", &common), ("vendor/module/index.mjs", &module)];
    let desk = pushed(&files);
    assert_eq!(desk.call("main/j", r#"{"a": 1, "b": 2}"#), json!([3, 5]));
}

#[test]
fn what_a_module_changes_is_changed_for_those_that_import_it() {
    let desk = pushed(&[
        (
            "main.js",
            "import { count, up } from './count.js';\nimport { again } from './through.js';\nimport { two } from './two.js';\n\
             export const one = 1;\nexport function call() {\n  up();\n  return [count, again, two(), typed()];\n}\n\
             import { typed } from './typed';\n",
        ),
        ("count.js", "export let count = 1;\nexport function up() {\n  count += 1;\n}\n"),
        ("through.js", "export { count as again } from './count.js';\n"),
        ("two.js", "import { one } from './main.js';\nexport const two = () => one + 1;\n"),
        ("typed.ts", "import { one } from './main.js';\nexport const typed = (): number => one + 2;\n"),
    ]);
    assert_eq!(desk.call("main/j", "{}"), json!([2, 2, 2, 3]));
}

#[test]
fn lines_are_the_authors_behind_imports_of_several_lines() {
    let desk = pushed(&[
        ("main.js", "import {\n  a,\n  // it's b\n  b,\n} from './lib.js'\nexport const call = () => {\n  b(a)\n}\n"),
        ("lib.js", "export const a = 1,\n  b = (n) => {\n    throw new RangeError(`odd: ${n}`);\n  };\n"),
    ]);
    let failed = desk.noetl(&["plugin", "call", "main/j", "--json-args", "{}"]).ends(7);
    failed.says("odd: 1").says("at b (lib.js:3:11)").says("at call (main.js:7:");
}

#[test]
fn a_package_names_its_own_files() {
    let package = r##"{"exports": "./source/index.js",
        "imports": {"#styles": "./source/vendor/styles.js", "#colours": {"node": "./no.js", "default": "./colours.js"}}}"##;
    let desk = pushed(&[
        ("main.js", "import loud from 'loud';\nexport const call = () => loud;\n"),
        ("vendor/loud/package.json", package),
        (
            "vendor/loud/source/index.js",
            "import a from '#styles';\nimport b from '#colours';\nexport default [a, b];\n",
        ),
        ("vendor/loud/source/vendor/styles.js", "export default 'bold';\n"),
        ("vendor/loud/colours.js", "export default 'red';\n"),
    ]);
    assert_eq!(desk.call("main/j", "{}"), json!(["bold", "red"]));
}

#[test]
fn a_single_file_may_be_commonjs_by_its_name() {
    let desk = Desk::new();
    desk.write("old.cjs", "exports.call = ({ n }) => ({ n: n + 1, self: typeof module.exports });\n");
    desk.noetl(&["plugin", "push", "old.cjs"]).ok();
    assert_eq!(desk.call("main/old", r#"{"n": 1}"#), json!({ "n": 2, "self": "object" }));
}

#[test]
fn a_property_of_unicode_in_an_expression_is_refused_with_what_to_write() {
    let desk = Desk::new();
    desk.write("words.js", "export const call = () => 1;\nconst word = /\\p{L}+/u;\n");
    let refused = desk.noetl(&["plugin", "push", "words.js"]);
    assert_ne!(refused.code, 0);
    refused.says("words.js:2").says("A-Za-z");
}
