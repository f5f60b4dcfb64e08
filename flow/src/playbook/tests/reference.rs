//! The list of all keys in `docs/playbooks.md` is made from the table that documents are checked with.
//!
//! `BLESS=1 cargo test -p noetl-flow --lib reference` writes it anew.

use std::collections::BTreeSet;
use std::fs;

use crate::playbook::keys::PLAYBOOK;
use crate::playbook::shape::{Object, Shape, Status};

/// What comes before it is written by hand.
const BEGIN: &str =
    "<!-- made from flow/src/playbook/keys.rs: `BLESS=1 cargo test -p noetl-flow --lib reference` -->\n";

fn reference() -> String {
    let mut page = String::new();
    let mut known = BTreeSet::new();
    let mut open: Vec<(&'static Object, String)> = vec![(&PLAYBOOK, "The document".to_owned())];
    let mut at = 0;
    while at < open.len() {
        let (object, title) = (open[at].0, open[at].1.clone());
        at += 1;
        if !known.insert(object.name) {
            continue;
        }
        page.push_str(&format!("\n### {title}\n\n{}\n\n| key | value | |\n|---|---|---|\n", object.about));
        for key in object.keys {
            let about = match key.status {
                Status::Required => format!("Required: {}.", key.about),
                Status::Optional => key.about.to_owned(),
                Status::Unused(instead) => format!("Has no effect; {instead}."),
                Status::Refused(instead) => format!("Not supported; {instead}."),
            };
            page.push_str(&format!("| `{}` | {} | {} |\n", key.name, value(&key.shape), about.replace('|', "\\|")));
            let above = if at == 1 { String::new() } else { format!("{title}.").replace('`', "") };
            below(&key.shape, &format!("`{above}{}`", key.name), &mut open);
        }
    }
    page
}

/// The objects that can stand there.
fn below(shape: &'static Shape, title: &str, open: &mut Vec<(&'static Object, String)>) {
    match shape {
        Shape::Object(object) | Shape::Task(object) => open.push((object, title.to_owned())),
        Shape::List(item) => below(item, title, open),
        Shape::OneOf(shapes) => shapes.iter().for_each(|shape| below(shape, title, open)),
        _ => {}
    }
}

fn value(shape: &Shape) -> String {
    match shape {
        Shape::Any => "anything".to_owned(),
        Shape::Text => "text".to_owned(),
        Shape::Template => "a template".to_owned(),
        Shape::Guard => "an expression or a boolean".to_owned(),
        Shape::Word => "text or a number".to_owned(),
        Shape::Bool => "`true` or `false`".to_owned(),
        Shape::Count => "a whole number from 1".to_owned(),
        Shape::Digits => "the same as text".to_owned(),
        Shape::Fraction => "a number from 0 to 1".to_owned(),
        Shape::Duration => "a duration".to_owned(),
        Shape::Choice(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Shape::Map | Shape::Object(_) => "a map".to_owned(),
        Shape::Task(_) => "a tool".to_owned(),
        Shape::List(item) => format!("a list: {}", value(item)),
        Shape::OneOf(shapes) => shapes.iter().map(value).collect::<Vec<_>>().join("; or "),
    }
}

#[test]
fn the_page_in_docs_has_every_key() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/playbooks.md");
    let page = fs::read_to_string(file).expect("docs/playbooks.md is there");
    let (by_hand, made) = page.split_once(BEGIN).expect("the page says where the list begins");
    let reference = reference();
    if std::env::var_os("BLESS").is_some() {
        fs::write(file, format!("{by_hand}{BEGIN}{reference}")).expect("the page can be written");
    } else {
        assert!(made == reference, "run `BLESS=1 cargo test -p noetl-flow --lib reference`");
    }
}
