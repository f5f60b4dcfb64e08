//! Records that refer to each other: a list of ids, and details with links to the record after.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::wire::{Ask, Reply};

const USUAL: u64 = 382;
const MOST: u64 = 20_000;
const WINDOW: u64 = 5;

fn total(ask: &Ask) -> u64 {
    ask.number("total", ask.number("count", USUAL)).clamp(1, MOST)
}

fn id_of(number: u64) -> String {
    format!("REF-{number:05}")
}

pub(super) fn items(ask: &Ask) -> Reply {
    let total = total(ask);
    let (page, size) = (ask.number("page", 1).max(1), ask.number("pageSize", 100).max(1));
    let from = (page - 1).saturating_mul(size).min(total);
    let to = from.saturating_add(size).min(total);
    let items: Vec<Value> = (from + 1..=to).map(|number| json!({"id": id_of(number), "number": number})).collect();
    let paging = json!({"hasMore": to < total, "page": page, "pageSize": size, "total": total});
    Reply::json(&json!({"data": items, "items": items, "paging": paging, "total": total}))
}

pub(super) fn detail(id: &str, ask: &Ask) -> Reply {
    let total = total(ask);
    let Some(number) = id.strip_prefix("REF-").unwrap_or(id).parse::<u64>().ok() else {
        return Reply::error(400, &format!("`{id}` is not the id of a record"));
    };
    if number == 0 || number > total {
        return Reply::error(404, &format!("there are records up to {total}"));
    }
    let refs: Vec<String> = match ask.text("ref_mode").unwrap_or("linked") {
        "linked" => (number < total).then(|| id_of(number + 1)).into_iter().collect(),
        "windowed" => (number + 1..=total.min(number + WINDOW)).map(id_of).collect(),
        "expanded" => (number + 1..=total).map(id_of).collect(),
        other => return Reply::error(400, &format!("`{other}` is no ref_mode: linked, windowed, expanded")),
    };
    let bytes = usize::try_from(ask.number("payload_bytes", ask.number("payload_kb", 1) * 1024)).unwrap_or(1024);
    let payload = block(number, bytes.min(10 << 20));
    Reply::json(&json!({"id": id_of(number), "number": number, "references": refs,
        "next": (number < total).then(|| id_of(number + 1)), "payload": payload}))
}

/// A hash, repeated to a length.
fn block(number: u64, bytes: usize) -> String {
    let hash = hex::encode(Sha256::digest(id_of(number)));
    hash.chars().cycle().take(bytes).collect()
}
