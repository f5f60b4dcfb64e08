//! Variables of an execution, as `set` writes them.

use serde_json::{Map, Value as Json};

use crate::extract::size;

/// The most a variable may be as JSON, which is what a payload may be too: playbooks collect pages in a variable. Whatever
/// is larger is a result, and results can be referred to.
const LARGEST: usize = 1024 * 1024;

/// What to say of a variable that is too large, if one is.
pub(super) fn too_large<'a>(variables: impl IntoIterator<Item = (&'a String, &'a Json)>) -> Option<String> {
    let (name, _) = variables.into_iter().find(|(_, value)| size(value, LARGEST).is_none())?;
    Some(format!("variable `{name}` is more than {LARGEST} bytes; keep it as the result of a step and refer to that"))
}

/// Puts a value under a key like `ctx.page`, or `ctx.totals.rows` for a field of what the variable is now.
pub(super) fn assign(
    variables: &mut Map<String, Json>,
    key: &str,
    value: Json,
    current: impl FnOnce(&str) -> Option<Json>,
) {
    let mut path = without_scope(key).split('.');
    let name = path.next().unwrap_or_default();
    let mut fields = path.peekable();
    if fields.peek().is_none() {
        variables.insert(name.to_owned(), value);
        return;
    }
    let mut place = variables.entry(name).or_insert_with(|| current(name).unwrap_or_default());
    for field in fields {
        if !place.is_object() {
            *place = Json::Object(Map::new());
        }
        place = match place {
            Json::Object(map) => map.entry(field).or_insert(Json::Null),
            _ => unreachable!("it was just made an object"),
        };
    }
    *place = value;
}

/// The name of the variable a key writes a field of, if it does.
pub(super) fn extended(key: &str) -> Option<&str> {
    without_scope(key).split_once('.').map(|(name, _)| name)
}

fn without_scope(key: &str) -> &str {
    ["ctx.", "iter.", "step."].iter().find_map(|scope| key.strip_prefix(scope)).unwrap_or(key)
}
