//! Looks for the planted secrets in bytes, in every encoding; written apart from the code that masks them. The bytes are looked
//! at as they are, with the escapes of JSON read, and without the ends of lines.

use std::path::Path;

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::planted::{PLANTED, every_byte, hex, html, json_escaped, numbers, percent, units};

/// A part of a long secret that must not be there.
const PART: usize = 48;

/// The wallet's own files, which have the secrets sealed.
const WALLET: &str = "wallet.";

pub struct Search {
    forms: AhoCorasick,
    /// Which secret and how it is written.
    names: Vec<String>,
}

impl Search {
    pub fn new() -> Self {
        let (mut forms, mut names) = (Vec::new(), Vec::new());
        for planted in &PLANTED {
            let secret = planted.secret;
            let escaped = json_escaped(secret);
            let encoded = percent(secret);
            let mut all = vec![
                ("plain", secret.to_owned()),
                ("JSON", escaped.clone()),
                ("JSON in JSON", json_escaped(&escaped)),
                ("JSON in ASCII", ascii(&escaped)),
                ("percent", encoded.clone()),
                ("percent, small", encoded.to_lowercase()),
                ("form", encoded.replace("%20", "+")),
                ("percent, twice", percent(&encoded)),
                ("entities", html(secret)),
                ("numbers of a page", numbers(secret)),
                ("numbers of JSON", units(secret)),
                ("hexadecimal", hex(secret)),
                ("hexadecimal, capital", hex(secret).to_uppercase()),
            ];
            all.push(("all percent", every_byte(secret, "%", "")));
            all.push(("hexadecimal with colons", every_byte(secret, "", ":")));
            // What is cut off somewhere is a secret still, if more is left of it than a fragment.
            if secret.len() > 100 && !secret.contains('.') {
                all.extend((0..secret.len() - PART).map(|at| ("part", secret[at..at + PART].to_owned())));
            }
            for before in 0..3 {
                let bytes = [&b"ab"[..before.min(2)], secret.as_bytes()].concat();
                let letters = (before * 8).div_ceil(6)..bytes.len() * 8 / 6;
                all.push(("base64", STANDARD_NO_PAD.encode(&bytes)[letters.clone()].to_owned()));
                all.push(("base64url", URL_SAFE_NO_PAD.encode(&bytes)[letters].to_owned()));
            }
            for (way, form) in all {
                names.push(format!("{} in {way}", planted.alias));
                forms.push(form);
            }
        }
        Self { forms: AhoCorasick::new(&forms).expect("few patterns"), names }
    }

    /// Which secret is in there, and where.
    pub fn found(&self, bytes: &[u8]) -> Option<(&str, usize)> {
        let find = |bytes: &[u8]| {
            let found = self.forms.find(bytes)?;
            Some((self.names[found.pattern().as_usize()].as_str(), found.start()))
        };
        find(bytes).or_else(|| find(&read(bytes))).or_else(|| find(&joined(bytes)))
    }

    #[track_caller]
    pub fn text(&self, what: &str, bytes: &[u8]) {
        if let Some((name, at)) = self.found(bytes) {
            let around = &bytes[at.saturating_sub(200)..bytes.len().min(at + 100)];
            panic!("{name} is in {what} at {at}: {}", String::from_utf8_lossy(around));
        }
    }

    /// Every file below a folder.
    #[track_caller]
    pub fn files(&self, folder: &Path) {
        let (mut folders, mut searched) = (vec![folder.to_owned()], 0);
        while let Some(next) = folders.pop() {
            for entry in std::fs::read_dir(&next).expect("a folder").flatten() {
                let path = entry.path();
                let kind = entry.file_type().expect("a kind");
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() && !entry.file_name().to_string_lossy().starts_with(WALLET) {
                    self.text(&path.display().to_string(), &std::fs::read(&path).expect("readable"));
                    searched += 1;
                }
            }
        }
        assert!(searched > 3, "only {searched} files in {}", folder.display());
    }
}

fn ascii(text: &str) -> String {
    let unit = |letter: char| {
        let mut units = [0; 2];
        letter.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>()
    };
    text.chars().map(|letter| if letter.is_ascii() { letter.to_string() } else { unit(letter) }).collect()
}

/// With the escapes of JSON read, those by number above all.
fn read(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let (mut out, mut rest) = (String::with_capacity(text.len()), &*text);
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = &rest[at..];
        let unit = |n: usize| {
            let hex = escape.get(6 * n..6 * n + 6)?.strip_prefix("\\u")?;
            u16::from_str_radix(hex, 16).ok()
        };
        let letter = char::decode_utf16((0..2).map_while(unit)).next().and_then(Result::ok);
        let (letter, length) = match (letter, escape[1..].chars().next()) {
            (Some(letter), _) => (letter, 6 * letter.len_utf16()),
            (None, Some(next @ ('"' | '\\' | '/'))) => (next, 2),
            (None, _) => ('\\', 1),
        };
        out.push(letter);
        rest = &escape[length..];
    }
    out.push_str(rest);
    out.into_bytes()
}

/// Without the ends of lines, escaped or not.
fn joined(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    text.replace("\\r", "").replace("\\n", "").replace(['\r', '\n'], "").into_bytes()
}
