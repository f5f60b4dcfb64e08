//! Secrets that are known by their own shape, without a name beside them.
//!
//! Each function looks at one position and answers the end of the secret that starts there. What it reads
//! before it refuses is bounded, or is a run that no later position reads again: that keeps the scan linear.

/// Characters a token is made of.
pub fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Fewer characters than this after a vendor's prefix are a word, not a key.
const SHORTEST_KEY: usize = 12;
/// How much of a run decides whether it looks like a key.
const SAMPLE: usize = 64;
/// Our own tokens are longer; a piece this long still gives away most of one.
const SHORTEST_OWN: usize = 32;

/// `{"a":1}` in base64url; no header or claims are shorter.
const SHORTEST_OBJECT: usize = 10;

const VENDOR_PREFIXES: [&str; 8] = ["sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "AIza"];

/// End of the secret that starts at the beginning of `rest`, `previous` being the byte before it.
pub fn end_of_token(rest: &[u8], previous: Option<u8>) -> Option<usize> {
    match rest.first()? {
        b's' | b'g' | b'A' => vendor_key(rest),
        b'x' => slack_token(rest),
        b'y' => google_access_token(rest),
        b'n' => own_token(rest),
        b'e' if !previous.is_some_and(is_token_byte) => json_web_token(rest),
        b'-' => private_key(rest),
        _ => None,
    }
}

fn run(bytes: &[u8], accepts: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| accepts(**byte)).count()
}

/// Words are lower case; a key has a digit or a capital letter somewhere near its start.
fn looks_like_a_key(bytes: &[u8]) -> bool {
    let sample = &bytes[..run(&bytes[..bytes.len().min(SAMPLE)], is_token_byte)];
    sample.len() >= SHORTEST_KEY && sample.iter().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

fn vendor_key(rest: &[u8]) -> Option<usize> {
    let prefix = VENDOR_PREFIXES.iter().find(|prefix| rest.starts_with(prefix.as_bytes()))?.len();
    looks_like_a_key(&rest[prefix..]).then(|| prefix + run(&rest[prefix..], is_token_byte))
}

/// `xoxb-`, `xoxp-` and their sisters.
fn slack_token(rest: &[u8]) -> Option<usize> {
    let known = rest.starts_with(b"xox") && rest.get(3)?.is_ascii_lowercase() && *rest.get(4)? == b'-';
    (known && looks_like_a_key(&rest[5..])).then(|| 5 + run(&rest[5..], is_token_byte))
}

fn google_access_token(rest: &[u8]) -> Option<usize> {
    let tail = rest.strip_prefix(b"ya29.")?;
    looks_like_a_key(tail).then(|| 5 + run(tail, |byte| is_token_byte(byte) || byte == b'.'))
}

/// Metric and setting names start with `noetl_` too, but are words: neither all digits and a to f, nor of
/// both cases.
fn own_token(rest: &[u8]) -> Option<usize> {
    let tail = rest.strip_prefix(b"noetl_")?;
    let sample = &tail[..run(&tail[..tail.len().min(SAMPLE)], is_token_byte)];
    let mixed = sample.iter().any(u8::is_ascii_uppercase) && sample.iter().any(u8::is_ascii_lowercase);
    let hex = sample.iter().take(SHORTEST_OWN).all(u8::is_ascii_hexdigit);
    (sample.len() >= SHORTEST_OWN && (mixed || hex)).then(|| 6 + run(tail, is_token_byte))
}

/// Three base64url parts, of which the first two are JSON objects (`eyJ` is `{"`).
fn json_web_token(rest: &[u8]) -> Option<usize> {
    let claims_at = end_of_object(rest)?;
    let signature_at = claims_at + end_of_object(&rest[claims_at..])?;
    Some(signature_at + run(&rest[signature_at..], is_token_byte))
}

/// The place behind an encoded JSON object and the dot that follows it.
fn end_of_object(part: &[u8]) -> Option<usize> {
    let length = run(part, is_token_byte);
    (part.starts_with(b"eyJ") && length >= SHORTEST_OBJECT && part.get(length) == Some(&b'.')).then_some(length + 1)
}

/// A PEM block of any private key, cut off or whole. Certificates and public keys stay.
fn private_key(rest: &[u8]) -> Option<usize> {
    let label = rest.strip_prefix(b"-----BEGIN ")?;
    let label = &label[..run(&label[..label.len().min(SAMPLE)], |byte| byte.is_ascii_uppercase() || byte == b' ')];
    if !label.ends_with(b"PRIVATE KEY") {
        return None;
    }
    let after_label = 11 + label.len();
    let end = find(&rest[after_label..], b"-----END ").map(|at| after_label + at + 9);
    Some(match end {
        None => rest.len(),
        // The end line repeats the label between its dashes.
        Some(end) => find(&rest[end..], b"-----").map_or(rest.len(), |at| end + at + 5),
    })
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// Whether a word after `Bearer` is a token and not the next word of a sentence.
pub fn is_bearer_token(word: &[u8]) -> bool {
    word.len() >= SHORTEST_KEY && word.iter().skip(1).any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// Whether a word after `Basic` is what the scheme says: base64 of `user:password`.
pub fn is_basic_credential(word: &[u8]) -> bool {
    let body = &word[..run(word, |byte| byte != b'=')];
    if body.len() < 4 || !word.len().is_multiple_of(4) {
        return false;
    }
    let (mut bits, mut held, mut colon) = (0u32, 0u32, false);
    for byte in body {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return false,
        };
        bits = (bits << 6) | u32::from(six);
        held += 6;
        if held >= 8 {
            held -= 8;
            let decoded = (bits >> held) as u8;
            colon |= decoded == b':';
            if decoded.is_ascii_control() {
                return false;
            }
        }
    }
    colon
}
