//! `docs/configuration.md`, made from the table. A test compares the file with what this prints.

use super::table::{Row, TABLE};

const HEAD: &str = "\
# Configuration of `noetl serve`

This page is made by `noetl config docs`; edit the table in `cli/src/config/table.rs` instead.

A value comes from the first of: a flag, the environment, the file given with `--config` (or `NOETL_CONFIG`), the
default. The file is TOML. An unknown option, a value out of bounds or an unknown `NOETL_<SECTION>_...` variable refuses the start.
Lists in the environment are separated by commas. `noetl config show` prints each value and where it came from;
`noetl config check FILE` prints everything that is wrong with a file.
";

/// The whole page.
pub fn markdown() -> String {
    let mut page = HEAD.to_owned();
    let mut section = "";
    for row in TABLE {
        if row.section() != section {
            section = row.section();
            page.push_str(&format!("\n## `[{section}]`\n"));
        }
        page.push_str(&entry(row));
    }
    page
}

fn entry(row: &Row) -> String {
    format!(
        "\n### `{}`\n\n{}\n\n- Value: {}\n- Default: `{}`\n- Environment: `{}`\n- Since: {}\n",
        row.name(),
        row.help,
        row.kind.describe(),
        row.default_value(),
        row.env(),
        row.since
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_docs_is_the_one_the_table_makes() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/configuration.md");
        let written = std::fs::read_to_string(file).expect("docs/configuration.md is there");
        assert!(written == markdown(), "run `noetl config docs > docs/configuration.md`");
    }
}
