//! `docs/tools.md`, made from what the tools say about themselves. A test compares the file with what this prints.

use super::known;

const HEAD: &str = "\
# Tools

This page is made by `noetl tool docs` from what the tools say about themselves (`plugins/tools/<kind>/describe.json`, and
`flow/src/playbook/kinds/` for those that the engine runs itself). `noetl tool list` and `noetl tool show KIND` print the
same of a server, with the tools that were pushed there or bound for a tenant.

What every tool has besides its own fields is in [playbooks.md](playbooks.md): `kind`, `name`, `input`, `set`, `timeout`
and `spec`. Every value can be a template.
";

/// The whole page.
pub fn markdown() -> String {
    let mut page = HEAD.to_owned();
    page.push_str("\n| kind | |\n|---|---|\n");
    for (kind, tool) in known::all() {
        page.push_str(&format!("| [`{kind}`](#{kind}) | {} |\n", tool.summary));
    }
    for (kind, tool) in known::all() {
        page.push('\n');
        page.push_str(&tool.markdown(kind));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_docs_is_the_one_the_tools_make() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/tools.md");
        let written = std::fs::read_to_string(file).expect("docs/tools.md is there");
        assert!(written == markdown(), "run `noetl tool docs > docs/tools.md`");
    }
}
