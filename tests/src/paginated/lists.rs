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

const ON_PAGE: u64 = 10;

pub(super) fn assessments(ask: &Ask) -> Reply {
    let items: Vec<Value> =
        (1..=ITEMS).map(|i| json!({"id": i, "name": format!("Assessment {i}"), "score": 50 + i % 50})).collect();
    Reply::json(&page_of(&items, ask.number("page", 1), ask.number("pageSize", ON_PAGE)))
}

/// A page of what is behind failures and limits. How many there are is not told.
fn page(ask: &Ask, limited: bool) -> Value {
    let item = |i: u64| {
        let mut item = json!({"id": i, "value": format!("item_{i}")});
        if limited {
            item["rate_limited"] = true.into();
        }
        item
    };
    let mut page = page_of(&(1..=ITEMS).map(item).collect::<Vec<_>>(), ask.number("page", 1), ON_PAGE);
    if let Some(paging) = page["paging"].as_object_mut() {
        paging.remove("total");
    }
    page
}

pub(super) fn users(ask: &Ask) -> Reply {
    let (offset, limit) = (ask.number("offset", 0).min(ITEMS), ask.number("limit", 10));
    let end = offset.saturating_add(limit).min(ITEMS);
    let users: Vec<Value> = (offset + 1..=end)
        .map(|i| json!({"id": i, "username": format!("user{i}"), "email": format!("user{i}@example.com")}))
        .collect();
    Reply::json(&json!({"users": users, "has_more": end < ITEMS, "offset": offset, "limit": limit, "total": ITEMS}))
}

/// The cursor is the number of a page in base64; none, and one that is none of ours, begins with the first.
pub(super) fn events(ask: &Ask) -> Reply {
    let limit = ask.number("limit", 10).max(1);
    let decoded = ask.text("cursor").and_then(|cursor| STANDARD.decode(cursor).ok());
    let number = decoded.and_then(|bytes| String::from_utf8(bytes).ok()?.trim().parse().ok());
    let page: u64 = number.filter(|page| *page > 0).unwrap_or(1);
    let from = (page - 1).saturating_mul(limit).min(ITEMS);
    let to = from.saturating_add(limit).min(ITEMS);
    let events: Vec<Value> = (from + 1..=to)
        .map(|i| {
            json!({"id": i, "type": "user_action", "timestamp": format!("2024-01-{:02}T12:00:00Z", i % 28 + 1),
                "data": {"action": format!("event_{i}")}})
        })
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
    Reply::json(&page(ask, false))
}

pub(super) async fn errors(ask: &Ask) -> Reply {
    let retry_after = ask.number("retry_after", 5);
    match ask.text("error_type").unwrap_or_default() {
        "429" => refused(429, "Too Many Requests").with("retry-after", retry_after),
        "503" => refused(503, "Service Unavailable").with("retry-after", retry_after),
        "500" => Reply::error(500, "a failure on purpose"),
        "auth" => Reply::error(401, "who are you?"),
        "403" => Reply::error(403, "not you"),
        "404" => Reply::error(404, "there is no such thing"),
        "timeout" => {
            tokio::time::sleep(TIMEOUT).await;
            Reply::json(&json!({"data": [], "simulated": "timeout"}))
        }
        _ => Reply::json(&page(ask, false)),
    }
}

/// What a gateway says that lets nobody through.
pub(super) fn refused(status: u16, error: &str) -> Reply {
    Reply::json(&json!({"error": error, "message": "come back later"})).status(status)
}

pub(super) fn rate_limited(ask: &Ask, world: &World) -> Reply {
    let most = usize::try_from(ask.number("requests_per_second", 2)).unwrap_or(usize::MAX).max(1);
    let (admitted, seen) = world.admits("rate-limited", most);
    let limit = json!({"requests_in_window": seen, "limit": most});
    if !admitted {
        let told = json!({"error": "Rate limit exceeded", "requests_in_window": seen, "limit": most});
        return Reply::json(&told).status(429).with("retry-after", 1);
    }
    let mut page = page(ask, true);
    page["rate_limit"] = limit;
    Reply::json(&page)
}

pub(super) fn heavy(ask: &Ask) -> Reply {
    let kb = ask.number("payload_kb", 10).min(10 * 1024);
    let (number, size) = (ask.number("page", 1).max(1), ask.number("pageSize", 10).max(1));
    let first = (number - 1).saturating_mul(size).min(HEAVY_ITEMS);
    let last = first.saturating_add(size).min(HEAVY_ITEMS);
    let items: Vec<Value> = (first + 1..=last).map(|i| heavy_item(i, kb as usize * 1024)).collect();
    let paging = json!({"hasMore": last < HEAVY_ITEMS, "page": number, "pageSize": size, "total": HEAVY_ITEMS});
    let meta = json!({"payload_kb_per_item": kb, "estimated_response_kb": kb * (last - first)});
    Reply::json(&json!({"data": items, "paging": paging, "meta": meta}))
}

fn heavy_item(i: u64, bytes: usize) -> Value {
    const CATEGORIES: [&str; 4] = ["finance", "technology", "healthcare", "education"];
    let day = i % 28 + 1;
    json!({"id": i, "name": format!("Heavy Assessment {i}"), "score": 50 + i % 50,
        "category": CATEGORIES[(i % 4) as usize],
        "metadata": {"created_at": format!("2024-01-{day:02}T12:00:00Z"),
            "updated_at": format!("2024-01-{day:02}T14:30:00Z"), "version": format!("1.{}.0", i % 10),
            "tags": (0..5).map(|n| format!("tag_{n}")).collect::<Vec<_>>()},
        "description": format!("What there is to say about {i}. ").repeat(10), "payload": noise(i, bytes)})
}

pub(super) fn heavy_stats() -> Reply {
    Reply::json(&json!({"total_items": HEAVY_ITEMS, "default_payload_kb": 10, "max_recommended_payload_kb": 1000}))
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
