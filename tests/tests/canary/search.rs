//! Looks for the planted secrets in bytes, in every encoding; written apart from the code that masks them.

use std::path::Path;

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::planted::{PLANTED, hex, html, json_escaped, numbers, percent, units};

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
        self.forms.find(bytes).map(|found| (self.names[found.pattern().as_usize()].as_str(), found.start()))
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
