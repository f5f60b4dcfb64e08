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

/// A key without a pattern.
const LONG: &str = concat!(
    "cnry20Ik2zwEQHfwcepYyNGfB51YbmwxAscRuzOl8G5UBBBpiA84YrNbuBhOwc8fjOWOrOwd8S7Ba16j7pGLou3SHvV5utg79bg1",
    "6qMTSl4f28gZl2CePvzZ"
);
/// A token of three parts, of which the last is as long as a signature with RSA.
const SIGNED: &str = concat!(
    "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImNhbmFyeSJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlLyI",
    "sInN1YiI6ImNhbmFyeSIsInNjb3BlIjoicmVhZCB3cml0ZSByZWFkIHdyaXRlIHJlYWQgd3JpdGUgcmVhZCB3cml0ZSByZWFkIHd",
    "yaXRlIHJlYWQgd3JpdGUgcmVhZCB3cml0ZSByZWFkIHdyaXRlICIsIm5vbmNlIjoiY25yeTIxIn0.HLKuVngbEU3yv4iEDu7ow2V",
    "WedDWpWRuX51utu5Uz7f-j_t67s6-cpVi9nm0na-uJrBYNHGidNRifaH2EHuuWfDKOIDFCvgQUXAxFfTEAsOkr-Dn5FhzT8cLoND",
    "5Qy-pSrhh1CRHgEQUVM6dEfd4JgKdug2jATEx0UOLeNMCXdNbD76nwba32CG1XM9uCPulvnC0MNnZC5H0-7aJAkDvnJc-YOvy7Rs",
    "yPgPPKqybND8F_lt6Svi991-lydU-h2KMJtWS1ILEQlxdq4WkOT2MqfgVU7eztS74DxXyG9jzg08uqKcYzwBo77WMCzbxbMxZjY-"
);

/// What goes into headers as it is has to be ASCII; a password goes there in base64.
pub const PLANTED: [Planted; 25] = [
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
    planted("canary-20", "bearer", "token", LONG),
    planted("canary-21", "bearer", "token", SIGNED),
    planted(
        "canary-22",
        "api_key",
        "key",
        "xdcUhPjPm/S3b0eQRzCAS54yJanxM7XeoWj04oUfBy/MAPyqfKYgYXF6SOUuKaP6N5qVP6pok+MuxaJ7lA==",
    ),
    planted("canary-23", "hmac", "secret", "cnry23signs=and+is&never'sent"),
    planted("canary-24", "s3", "secret_key", "cnry24/S3+key/of40letters/and0signs+too="),
];

impl Planted {
    pub fn data(&self) -> Value {
        match self.kind {
            "basic" => json!({ "user": "someone", "password": self.secret }),
            "s3" => json!({ "access_key": "cnry24ID0of0the0key0", "secret_key": self.secret }),
            _ => json!({ self.field: self.secret }),
        }
    }

    /// Whether a request with it has a signature in the place of the secret.
    pub fn signs(&self) -> bool {
        matches!(self.kind, "hmac" | "s3")
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

/// As `System.Text.Json` writes it: in capital letters, and more of them than are needed.
pub fn dotnet(text: &str) -> String {
    let escaped = |letter: char| matches!(letter, '"' | '&' | '\'' | '+' | '<' | '>' | '`') || !letter.is_ascii();
    by_number(text, escaped, |unit| format!("\\u{unit:04X}"))
}

/// As Gson writes it.
pub fn gson(text: &str) -> String {
    by_number(text, |letter| matches!(letter, '&' | '\'' | '=' | '<' | '>'), |unit| format!("\\u{unit:04x}"))
}

fn by_number(text: &str, escaped: fn(char) -> bool, number: fn(u16) -> String) -> String {
    let mut written = String::new();
    for letter in text.chars() {
        if escaped(letter) {
            written.extend(letter.encode_utf16(&mut [0; 2]).iter().map(|unit| number(*unit)));
        } else {
            written.push_str(&json_escaped(&letter.to_string()));
        }
    }
    written
}

/// Base64 in lines, as mails and PostgreSQL have it.
pub fn wrapped(text: &str) -> String {
    let letters = base64(text);
    let lines: Vec<&str> = letters.as_bytes().chunks(76).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    lines.join("\n")
}

/// Every byte by its code.
pub fn every_byte(text: &str, before: &str, between: &str) -> String {
    text.bytes().map(|byte| format!("{before}{byte:02X}")).collect::<Vec<_>>().join(between)
}

/// As it is within a JSON text.
pub fn json_escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
