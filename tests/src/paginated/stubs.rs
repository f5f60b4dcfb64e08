//! Stand-ins for public services that playbooks name: an echo, a few lists, a forecast, files by their name.
//!
//! They have the shape of what they stand for and answer the same every time.

use std::time::Duration;

use serde_json::{Map, Value, json};
use walkdir::WalkDir;

use super::World;
use super::lists::noise;
use super::wire::{Ask, Reply};

const LONGEST_DELAY: f64 = 60.0;
const LISTS: [(&str, u64); 6] =
    [("users", 10), ("posts", 100), ("comments", 500), ("albums", 100), ("photos", 50), ("todos", 200)];

pub(super) async fn answer(ask: &Ask, parts: &[&str], world: &World) -> Reply {
    match parts {
        ["get" | "post" | "put" | "patch" | "delete" | "headers" | "echo"] | ["anything", ..] => {
            Reply::json(&echo(ask))
        }
        ["status", code] => match code.parse().ok().filter(|code| (200..600).contains(code)) {
            Some(code) => Reply::json(&json!({"status": code})).status(code),
            None => Reply::error(400, "a status is a number from 200 to 599"),
        },
        ["delay", seconds] => {
            let seconds = seconds.parse::<f64>().unwrap_or(0.0).clamp(0.0, LONGEST_DELAY);
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
            Reply::json(&echo(ask))
        }
        ["bytes", count] => {
            let count = count.parse::<usize>().unwrap_or(0).min(100 << 20);
            Reply::text("application/octet-stream", noise(1, count))
        }
        ["json"] => Reply::json(&json!({"slideshow": {"title": "Sample", "slides": [{"title": "One"}]}})),
        ["uuid"] => Reply::json(&json!({"uuid": "00000000-0000-4000-8000-000000000000"})),
        ["ip"] => Reply::json(&json!({"origin": "127.0.0.1"})),
        ["bearer"] => match ask.headers.get("authorization") {
            Some(header) if header.starts_with("Bearer ") => Reply::json(&json!({"authenticated": true})),
            _ => Reply::error(401, "a bearer token is missing"),
        },
        ["v1", "forecast"] => Reply::json(&forecast(ask)),
        ["repos", owner, name, ..] => Reply::json(&repository(owner, name)),
        ["search", "repositories"] => {
            let items: Vec<Value> = (1..=3).map(|n| repository("example", &format!("repository-{n}"))).collect();
            Reply::json(&json!({"total_count": items.len(), "items": items}))
        }
        [name] if is_list(name) && ask.method == "GET" => Reply::json(&list(name, ask)),
        [name, id] if is_list(name) && ask.method == "GET" => match id.parse().ok().and_then(|id| item(name, id)) {
            Some(item) => Reply::json(&item),
            None => Reply::error(404, "{}"),
        },
        [.., file] if file.ends_with(".py") || file.ends_with(".sql") || file.ends_with(".js") => script(file, world),
        // Whatever is told something says that it was heard.
        _ if ask.method != "GET" => Reply::json(&echo(ask)),
        _ => Reply::error(404, "there is nothing here"),
    }
}

fn echo(ask: &Ask) -> Value {
    let text = String::from_utf8_lossy(&ask.body).into_owned();
    let is_form = ask.headers.get("content-type").is_some_and(|kind| kind.contains("x-www-form-urlencoded"));
    let form: Vec<(String, String)> =
        if is_form { serde_urlencoded::from_str(&text).unwrap_or_default() } else { Vec::new() };
    let form: Map<String, Value> = form.into_iter().map(|(name, value)| (name, value.into())).collect();
    let body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    json!({"status": "ok", "method": ask.method, "url": ask.path, "args": ask.query(), "headers": ask.headers,
        "json": body, "data": text, "form": form, "origin": "127.0.0.1"})
}

fn is_list(name: &str) -> bool {
    LISTS.iter().any(|(known, _)| *known == name)
}

fn item(list: &str, id: u64) -> Option<Value> {
    let most = LISTS.iter().find(|(name, _)| *name == list)?.1;
    let user = (id.saturating_sub(1)) / 10 + 1;
    (1..=most).contains(&id).then(|| match list {
        "users" => json!({"id": id, "name": format!("User {id}"), "username": format!("user{id}"),
            "email": format!("user{id}@example.com"), "phone": "1-770-736-8031", "website": "example.org",
            "address": {"street": "Main", "city": "Gwen", "zipcode": "92998", "geo": {"lat": "1.5", "lng": "2.5"}},
            "company": {"name": "Example", "catchPhrase": "It's multi-layered", "bs": "e-markets"}}),
        "comments" => json!({"id": id, "postId": (id - 1) / 5 + 1, "name": format!("comment {id}"),
            "email": format!("user{id}@example.com"), "body": format!("words of comment {id}")}),
        "todos" => {
            json!({"id": id, "userId": (id - 1) / 20 + 1, "title": format!("todo {id}"), "completed": id.is_multiple_of(2)})
        }
        "albums" => json!({"id": id, "userId": user, "title": format!("album {id}")}),
        "photos" => json!({"id": id, "albumId": user, "title": format!("photo {id}"), "url": "http://example.org/p"}),
        _ => {
            json!({"id": id, "userId": user, "title": format!("title {id}"), "body": format!("it's the text\nof {id}")})
        }
    })
}

/// All of a list, those with the fields that the query names, and no more than `_limit`.
fn list(name: &str, ask: &Ask) -> Value {
    let most = LISTS.iter().find(|(known, _)| *known == name).map_or(0, |(_, most)| *most);
    let matches = |item: &Value| {
        let mut wanted = ask.query().iter().filter(|(field, _)| item.get(field.as_str()).is_some());
        wanted.all(|(field, value)| {
            let found = &item[field.as_str()];
            found.as_str().map_or_else(|| found.to_string(), str::to_owned) == *value
        })
    };
    let limit = usize::try_from(ask.number("_limit", most)).unwrap_or(usize::MAX);
    Value::Array((1..=most).filter_map(|id| item(name, id)).filter(matches).take(limit).collect())
}

fn forecast(ask: &Ask) -> Value {
    let (latitude, longitude) = (ask.float("latitude", 0.0), ask.float("longitude", 0.0));
    let hours: Vec<String> = (0..24).map(|hour| format!("2026-01-01T{hour:02}:00")).collect();
    let warmth: Vec<f64> = (0..24).map(|hour| 10.0 + latitude / 10.0 + f64::from(hour) / 2.0).collect();
    let now = json!({"time": "2026-01-01T12:00", "temperature": 21.5, "temperature_2m": 21.5, "windspeed": 7.2,
        "wind_speed_10m": 7.2, "relative_humidity_2m": 60, "weathercode": 1});
    json!({"latitude": latitude, "longitude": longitude, "timezone": "GMT", "elevation": 38.0,
        "hourly_units": {"time": "iso8601", "temperature_2m": "°C"}, "current": now, "current_weather": now,
        "hourly": {"time": hours, "temperature_2m": warmth, "precipitation": vec![0.0; 24],
            "windspeed_10m": vec![5.0; 24], "wind_speed_10m": vec![5.0; 24], "relative_humidity_2m": vec![60; 24]},
        "daily": {"time": ["2026-01-01"], "temperature_2m_max": [22.0], "temperature_2m_min": [10.0]}})
}

fn repository(owner: &str, name: &str) -> Value {
    json!({"id": 1, "name": name, "full_name": format!("{owner}/{name}"), "owner": {"login": owner},
        "description": "an example", "language": "Rust", "stargazers_count": 1234, "forks_count": 56,
        "open_issues_count": 7, "watchers_count": 1234, "size": 100, "default_branch": "main",
        "created_at": "2020-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"})
}

fn script(name: &str, world: &World) -> Reply {
    let found = world.folder.as_ref().and_then(|folder| {
        let mut entries = WalkDir::new(folder).into_iter().filter_map(Result::ok);
        entries.find(|entry| entry.file_type().is_file() && entry.file_name().to_string_lossy() == *name)
    });
    match found.and_then(|entry| std::fs::read(entry.path()).ok()) {
        Some(text) => Reply::text("text/plain", text),
        None => Reply::error(404, &format!("there is no file called {name}")),
    }
}
