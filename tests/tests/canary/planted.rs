//! The secrets, with the characters that encoders treat in their own ways.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

pub struct Planted {
    pub alias: &'static str,
    pub kind: &'static str,
    /// The field that is the secret.
    pub field: &'static str,
    pub secret: &'static str,
}

const fn planted(alias: &'static str, kind: &'static str, field: &'static str, secret: &'static str) -> Planted {
    Planted { alias, kind, field, secret }
}

/// What goes into headers as it is has to be ASCII; a password goes there in base64.
pub const PLANTED: [Planted; 20] = [
    planted("canary-00", "bearer", "token", "cnry00plainxQ7w"),
    planted("canary-01", "bearer", "token", "cnry01 with blanks in it"),
    planted("canary-02", "bearer", "token", "cnry02/slashes/and+plus=="),
    planted("canary-03", "bearer", "token", "cnry03\"quotes\"and\\back"),
    planted("canary-04", "bearer", "token", "cnry04&amp=1;semi#hash?q"),
    planted("canary-05", "bearer", "token", "cnry05%41%2Fpercent%"),
    planted("canary-06", "bearer", "token", "cnry06<tag>'single'`tick`"),
    planted("canary-07", "bearer", "token", "cnry07~tilde!(bang)*star"),
    planted("canary-08", "api_key", "key", "cnry08-api-key-simple"),
    planted("canary-09", "api_key", "key", "cnry09{brace}[bracket]|pipe"),
    planted("canary-10", "api_key", "key", "cnry10:colon@at,comma$dollar"),
    planted("canary-11", "api_key", "key", "cnry11^caret \\\"mixed\\\""),
    planted("canary-12", "api_key", "key", "871263549018273645"),
    planted("canary-13", "basic", "password", "cnry13simplepassword"),
    planted("canary-14", "basic", "password", "cnry14pass:with:colons"),
    planted("canary-15", "basic", "password", "cnry15päßwörd"),
    planted("canary-16", "basic", "password", "cnry16日本語の秘密"),
    planted("canary-17", "basic", "password", "cnry17🔑 emoji & more"),
    planted("canary-18", "basic", "password", "cn18!?"),
    planted("canary-19", "basic", "password", "cnry19{{ not.a.template }}"),
];

impl Planted {
    pub fn data(&self) -> Value {
        match self.kind {
            "basic" => json!({ "user": "someone", "password": self.secret }),
            _ => json!({ self.field: self.secret }),
        }
    }

    /// The field to put into a header by hand.
    pub fn header_field(&self) -> &'static str {
        if self.kind == "basic" { "basic" } else { self.field }
    }

    /// What stands in a header for it.
    pub fn in_header(&self) -> String {
        match self.kind {
            "basic" => base64(&format!("someone:{}", self.secret)),
            _ => self.secret.to_owned(),
        }
    }
}

pub fn base64(text: &str) -> String {
    STANDARD.encode(text)
}

pub fn percent(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

/// As it is on a page.
pub fn html(text: &str) -> String {
    let named = [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;"), ('\'', "&#39;")];
    named.iter().fold(text.to_owned(), |text, (letter, name)| text.replace(*letter, name))
}

/// Every letter by its number, as on a page.
pub fn numbers(text: &str) -> String {
    text.chars().map(|letter| format!("&#{};", u32::from(letter))).collect()
}

/// Every letter by its number, as in JSON.
pub fn units(text: &str) -> String {
    text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect()
}

pub fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// As it is within a JSON text.
pub fn json_escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
