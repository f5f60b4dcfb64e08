//! Lists of thirty-five: by page, by offset, by cursor; and the same list behind failures and limits.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::wire::{Ask, Reply};
use super::{World, page_of};

const ITEMS: u64 = 35;
const HEAVY_ITEMS: u64 = 100;
const TIMEOUT: Duration = Duration::from_secs(30);

fn items() -> Vec<Value> {
    (1..=ITEMS).map(|i| json!({"id": i, "name": format!("Assessment {i}"), "score": 50 + i % 50})).collect()
}

fn page(ask: &Ask) -> Value {
    page_of(&items(), ask.number("page", 1), ask.number("pageSize", 10))
}

pub(super) fn assessments(ask: &Ask) -> Reply {
    Reply::json(&page(ask))
}

pub(super) fn users(ask: &Ask) -> Reply {
    let (offset, limit) = (ask.number("offset", 0).min(ITEMS), ask.number("limit", 10));
    let end = offset.saturating_add(limit).min(ITEMS);
    let users: Vec<Value> = (offset + 1..=end)
        .map(|i| json!({"id": i, "name": format!("User {i}"), "email": format!("user{i}@example.com")}))
        .collect();
    Reply::json(&json!({"users": users, "has_more": end < ITEMS, "offset": offset, "limit": limit, "total": ITEMS}))
}

/// The cursor is the number of a page in base64; none begins with the first.
pub(super) fn events(ask: &Ask) -> Reply {
    let limit = ask.number("limit", 10).max(1);
    let page = match ask.text("cursor").filter(|cursor| !cursor.is_empty()) {
        None => 1,
        Some(cursor) => {
            let decoded = STANDARD.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            match decoded.and_then(|text| text.parse::<u64>().ok()).filter(|page| *page > 0) {
                Some(page) => page,
                None => return Reply::error(400, "the cursor is none of ours"),
            }
        }
    };
    let from = (page - 1).saturating_mul(limit).min(ITEMS);
    let to = from.saturating_add(limit).min(ITEMS);
    let kinds = ["login", "view", "click"];
    let events: Vec<Value> = (from + 1..=to)
        .map(|i| json!({"id": i, "type": kinds[(i % 3) as usize], "timestamp": 1_700_000_000 + i}))
        .collect();
    let next = (to < ITEMS).then(|| STANDARD.encode((page + 1).to_string()));
    Reply::json(&json!({"events": events, "next_cursor": next, "limit": limit}))
}

/// 500 on the first hit of a page that is named.
pub(super) fn flaky(ask: &Ask, world: &World) -> Reply {
    let number = ask.number("page", 1);
    let fails = ask.text("fail_on").unwrap_or_default().split(',').any(|page| page.trim().parse() == Ok(number));
    let mut hits = world.flaky.lock().expect("nobody panics here");
    let hit = hits.entry(number).or_default();
    *hit += 1;
    if fails && *hit == 1 {
        return Reply::error(500, &format!("page {number} fails the first time"));
    }
    Reply::json(&page(ask))
}

pub(super) async fn errors(ask: &Ask) -> Reply {
    let retry_after = ask.number("retry_after", 5);
    match ask.text("error_type").unwrap_or_default() {
        "429" | "rate_limit" => Reply::error(429, "too many requests").with("retry-after", retry_after),
        "503" | "unavailable" => Reply::error(503, "not now").with("retry-after", retry_after),
        "500" | "server" | "server_error" => Reply::error(500, "a failure on purpose"),
        "401" | "auth" => Reply::error(401, "who are you?"),
        "403" | "forbidden" => Reply::error(403, "not you"),
        "404" | "not_found" => Reply::error(404, "there is no such thing"),
        "timeout" => {
            tokio::time::sleep(TIMEOUT).await;
            Reply::json(&page(ask))
        }
        _ => Reply::json(&page(ask)),
    }
}

pub(super) fn rate_limited(ask: &Ask, world: &World) -> Reply {
    let most = usize::try_from(ask.number("requests_per_second", 2)).unwrap_or(usize::MAX).max(1);
    if !world.admits("rate-limited", most) {
        return Reply::error(429, "more requests a second than asked for").with("retry-after", 1);
    }
    Reply::json(&page(ask))
}

pub(super) fn heavy(ask: &Ask) -> Reply {
    let bytes = ask.number("payload_kb", 10).min(10 * 1024) * 1024;
    let (number, size) = (ask.number("page", 1).max(1), ask.number("pageSize", 10).max(1));
    let first = (number - 1).saturating_mul(size).min(HEAVY_ITEMS);
    let last = first.saturating_add(size).min(HEAVY_ITEMS);
    let items: Vec<Value> = (first + 1..=last)
        .map(|i| json!({"id": i, "name": format!("Item {i}"), "payload": noise(i, bytes as usize)}))
        .collect();
    let paging = json!({"hasMore": last < HEAVY_ITEMS, "page": number, "pageSize": size, "total": HEAVY_ITEMS});
    Reply::json(&json!({"data": items, "paging": paging}))
}

/// Letters that do not compress well, the same for the same seed.
pub(super) fn noise(seed: u64, bytes: usize) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut text = String::with_capacity(bytes);
    for _ in 0..bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.push(char::from(b'a' + (state % 26) as u8));
    }
    text
}
