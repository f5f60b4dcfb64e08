//! Records that refer to each other: pages of them, details of one, and with each the chain of what came before it.
//!
//! How long a chain is says `ref_mode`: the one before and this one (`linked`), the last few (`windowed`), all of them
//! (`expanded`), which grows with every page.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::wire::{Ask, Reply};

const USUAL: u64 = 382;
const MOST: u64 = 20_000;
const MOST_ON_PAGE: u64 = 200;
const MOST_KB: u64 = 256;

pub(super) fn items(ask: &Ask) -> Reply {
    let total = ask.number("total", USUAL).clamp(1, MOST);
    let size = ask.number("pageSize", 25).clamp(1, MOST_ON_PAGE);
    let page = ask.number("page", 1).clamp(1, total.div_ceil(size));
    let kb = ask.number("payload_kb", 1).min(MOST_KB);
    let (first, last) = ((page - 1) * size + 1, (page * size).min(total));
    let has_more = last < total;
    let record = |number: u64| named("record", number);
    let records: Vec<Value> = (first..=last)
        .map(|number| {
            json!({"record_id": number, "record_ref": record(number), "prev_ref": before(number).map(record),
                "batch": page, "payload": payload(&format!("item-{number}"), kb)})
        })
        .collect();
    let named_page = |number: u64| named("page", number);
    let (mode, chain) = chain("page", page, ask, 50);
    Reply::json(&json!({
        "data": records,
        "paging": {"hasMore": has_more, "page": page, "pageSize": size, "total": total,
            "nextPage": has_more.then_some(page + 1)},
        "refs": {"mode": mode, "root_ref": named("run-root", 1), "page_ref": named_page(page),
            "prev_page_ref": before(page).map(named_page), "next_page_ref": has_more.then(|| named_page(page + 1)),
            "chain_length": chain.len(), "chain": chain},
        "meta": {"payload_kb_per_record": kb, "approx_response_kb": (last + 1 - first) * kb + 1},
    }))
}

pub(super) fn detail(id: &str, ask: &Ask) -> Reply {
    let number = match id.parse::<i64>().map(u64::try_from) {
        Ok(Ok(number)) if number > MOST => return Reply::error(400, &format!("there are records up to {MOST}")),
        Ok(Ok(number)) if number > 0 => number,
        Ok(_) => return Reply::error(404, "records are counted from 1"),
        Err(_) => return Reply::error(422, &format!("`{id}` is not the number of a record")),
    };
    let kb = ask.number("payload_kb", 2).min(MOST_KB);
    let (mode, chain) = chain("detail", number, ask, 100);
    let parent = ask.text("parent_ref").filter(|parent| !parent.is_empty());
    Reply::json(&json!({
        "record_id": number,
        "status": "ok",
        "refs": {"mode": mode, "detail_ref": named("detail", number),
            "prev_detail_ref": before(number).map(|number| named("detail", number)), "parent_ref": parent,
            "chain_length": chain.len(), "chain": chain},
        "summary": {"classification": format!("class-{}", number % 7), "score": 40 + number % 60, "payload_kb": kb},
        "payload": payload(&format!("detail-{number}"), kb),
    }))
}

fn named(what: &str, number: u64) -> String {
    format!("{what}-{number:06}")
}

fn before(number: u64) -> Option<u64> {
    (number > 1).then(|| number - 1)
}

/// The mode, and what is in the chain of the one with this number.
fn chain(what: &str, number: u64, ask: &Ask, widest: u64) -> (&'static str, Vec<String>) {
    let wanted = ask.text("ref_mode").unwrap_or_default().to_lowercase();
    let (mode, length) = match wanted.as_str() {
        "expanded" => ("expanded", number),
        "windowed" => ("windowed", ask.number("chain_window", 2).clamp(1, widest)),
        _ => ("linked", 2),
    };
    let first = number.saturating_sub(length - 1).max(1);
    (mode, (first..=number).map(|number| named(what, number)).collect())
}

/// A hash, repeated to a length.
fn payload(seed: &str, kb: u64) -> String {
    let bytes = usize::try_from(kb * 1024).unwrap_or(0);
    hex::encode(Sha256::digest(seed)).chars().cycle().take(bytes).collect()
}
