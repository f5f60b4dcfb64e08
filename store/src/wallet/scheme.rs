//! How a credential of the type `hmac` signs a request: what is signed, and how the signature is written.
//!
//! Receivers agree on HMAC and on nothing else, so both are text with parts in braces: the *message*
//! (`{timestamp}.{body}`) and the *format* of the header (`t={timestamp},v1={hex}`). Two messages have a word: `request` and
//! `body`. A line end in a message is written `\n`, since fields of credentials have none.
//!
//! What nobody could check is refused when the credential is made: a message without the body, a time that is signed and not
//! sent, a time that is sent and not signed, a header without the signature.

use std::fmt;

/// Word for the usual message, and what it stands for: one line each.
const REQUEST: (&str, &str) = ("request", r"{method}\n{path}\n{timestamp}\n{body_sha256}");
/// Word for what most receivers of webhooks check.
const BODY: (&str, &str) = ("body", "{body}");
pub const USUAL_MESSAGE: &str = REQUEST.0;
pub const USUAL_HEADER: &str = "X-Signature";

/// The hash of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    Sha1,
    Sha256,
    Sha512,
}

impl Algorithm {
    pub const NAMES: [&str; 3] = ["sha1", "sha256", "sha512"];

    fn of(name: &str) -> Option<Self> {
        match name {
            "sha1" => Some(Self::Sha1),
            "sha256" => Some(Self::Sha256),
            "sha512" => Some(Self::Sha512),
            _ => None,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        };
        f.write_str(name)
    }
}

/// What can stand in braces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// `POST`.
    Method,
    /// Of the address, with the port if it is not the scheme's own.
    Host,
    /// The path and the query, as they are sent.
    Path,
    /// Seconds since 1970.
    Timestamp,
    /// All bytes of the body; nothing if there is none.
    Body,
    /// Their sha256, as 64 hexadecimal digits.
    BodySha256,
    KeyId,
    Algorithm,
    /// The signature in hexadecimal digits.
    Hex,
    /// The signature in base64.
    Base64,
}

const OF_MESSAGES: [(&str, Part); 7] = [
    ("method", Part::Method),
    ("host", Part::Host),
    ("path", Part::Path),
    ("timestamp", Part::Timestamp),
    ("body", Part::Body),
    ("body_sha256", Part::BodySha256),
    ("key_id", Part::KeyId),
];
const OF_FORMATS: [(&str, Part); 5] = [
    ("timestamp", Part::Timestamp),
    ("key_id", Part::KeyId),
    ("algorithm", Part::Algorithm),
    ("hex", Part::Hex),
    ("base64", Part::Base64),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    Part(Part),
}

/// Text with parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout(Vec<Piece>);

impl Layout {
    fn read(text: &str, known: &[(&str, Part)]) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or("has a `{` without its `}`")?;
            let part = known.iter().find(|(known, _)| *known == name).map(|(_, part)| *part);
            let part = part.ok_or_else(|| {
                let names: Vec<_> = known.iter().map(|(name, _)| format!("{{{name}}}")).collect();
                format!("has a part that is none; there are {}", names.join(", "))
            })?;
            pieces.extend([Piece::Text(before.to_owned()), Piece::Part(part)]);
            rest = after;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
        Ok(Self(pieces))
    }

    pub fn pieces(&self) -> &[Piece] {
        &self.0
    }

    fn has(&self, part: Part) -> bool {
        self.0.contains(&Piece::Part(part))
    }
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheme {
    pub algorithm: Algorithm,
    pub message: Layout,
    pub header: String,
    pub format: Layout,
    pub key_id: String,
    /// A header that has the time, where it is not in the signature's own.
    pub timestamp_header: Option<String>,
}

impl Scheme {
    /// Of the fields of a credential. What is wrong comes with the name of the field.
    pub fn read<'f>(field: impl Fn(&str) -> Option<&'f str>) -> Result<Self, (&'static str, String)> {
        let algorithm = Algorithm::of(field("algorithm").unwrap_or("sha256"));
        let algorithm =
            algorithm.ok_or_else(|| ("algorithm", format!("must be one of {}", Algorithm::NAMES.join(", "))))?;
        let message = message(field("message").unwrap_or(USUAL_MESSAGE)).map_err(|why| ("message", why))?;
        let header = field("header").unwrap_or(USUAL_HEADER).to_owned();
        let timestamp_header = field("timestamp_header").map(str::to_owned);
        let key_id = field("key_id").unwrap_or_default().to_owned();
        let usual = usual_format(&message, timestamp_header.is_some(), !key_id.is_empty());
        let format = format(field("format").unwrap_or(&usual)).map_err(|why| ("format", why))?;

        if key_id.is_empty() && (message.has(Part::KeyId) || format.has(Part::KeyId)) {
            return Err(("key_id", "is missing, and `message` or `format` has `{key_id}`".to_owned()));
        }
        if !is_visible(&key_id) {
            return Err(("key_id", "has characters that no header can have".to_owned()));
        }
        if timestamp_header.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(&header)) {
            return Err(("timestamp_header", "is the header of the signature".to_owned()));
        }
        let is_sent = format.has(Part::Timestamp) || timestamp_header.is_some();
        match (message.has(Part::Timestamp), is_sent) {
            (true, false) => {
                let why = "has no `{timestamp}`, which is signed: whoever checks it has to know it, from here or from \
                           `timestamp_header`";
                Err(("format", why.to_owned()))
            }
            (false, true) => Err((
                "message",
                "has no `{timestamp}`, which is sent: a time that is not signed says nothing".to_owned(),
            )),
            _ => Ok(Self { algorithm, message, header, format, key_id, timestamp_header }),
        }
    }
}

fn message(text: &str) -> Result<Layout, String> {
    let words = [REQUEST, BODY];
    let text = words.iter().find(|(word, _)| *word == text).map_or(text, |(_, stands_for)| *stands_for);
    let layout = Layout::read(&text.replace(r"\n", "\n"), &OF_MESSAGES)?;
    let bodies = layout.pieces().iter().filter(|piece| **piece == Piece::Part(Part::Body)).count();
    if bodies > 1 {
        return Err("has `{body}` more than once; it is read once, however large it is".to_owned());
    }
    if bodies == 1 || layout.has(Part::BodySha256) {
        return Ok(layout);
    }
    Err("is `request`, `body`, or text with `{body}` or `{body_sha256}` in it: else the body could be another one"
        .to_owned())
}

fn format(text: &str) -> Result<Layout, String> {
    let layout = Layout::read(text, &OF_FORMATS)?;
    if !is_visible(text) {
        return Err("has characters that no header can have".to_owned());
    }
    match layout.has(Part::Hex) || layout.has(Part::Base64) {
        true => Ok(layout),
        false => Err("has no place for the signature: `{hex}` or `{base64}`".to_owned()),
    }
}

/// `id=k1,t=1700000000,sha256=...`, without what is not there or sent elsewhere.
fn usual_format(message: &Layout, timestamp_apart: bool, has_key_id: bool) -> String {
    let key_id = if has_key_id { "id={key_id}," } else { "" };
    let time = if message.has(Part::Timestamp) && !timestamp_apart { "t={timestamp}," } else { "" };
    format!("{key_id}{time}{{algorithm}}={{hex}}")
}

fn is_visible(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &[(&str, &'static str)]) -> Result<Scheme, (&'static str, String)> {
        Scheme::read(|name| fields.iter().find(|(known, _)| *known == name).map(|(_, value)| *value))
    }

    fn text(layout: &Layout) -> String {
        layout.pieces().iter().map(|piece| format!("{piece:?};")).collect()
    }

    #[test]
    fn without_a_word_a_request_is_signed_and_its_time_goes_along() {
        let scheme = read(&[]).expect("valid");
        assert_eq!((scheme.algorithm, scheme.header.as_str()), (Algorithm::Sha256, "X-Signature"));
        let parts =
            "Part(Method);Text(\"\\n\");Part(Path);Text(\"\\n\");Part(Timestamp);Text(\"\\n\");Part(BodySha256);";
        assert_eq!(text(&scheme.message), parts);
        assert_eq!(
            text(&scheme.format),
            "Text(\"t=\");Part(Timestamp);Text(\",\");Part(Algorithm);Text(\"=\");Part(Hex);"
        );
    }

    #[test]
    fn the_usual_format_says_what_the_receiver_needs() {
        let format = |fields: &[(&str, &'static str)]| read(fields).expect("valid").format;
        let wanted = |text: &str| super::format(text).expect("valid");
        assert_eq!(format(&[("message", "body")]), wanted("{algorithm}={hex}"));
        assert_eq!(format(&[("timestamp_header", "X-Time")]), wanted("{algorithm}={hex}"));
        assert_eq!(format(&[("key_id", "k1")]), wanted("id={key_id},t={timestamp},{algorithm}={hex}"));
    }

    #[test]
    fn what_nobody_could_check_is_refused_by_its_field() {
        for (fields, field) in [
            (&[("algorithm", "md5")][..], "algorithm"),
            (&[("message", "{method}")][..], "message"),
            (&[("message", "{body} {nonce}")][..], "message"),
            (&[("message", "{body")][..], "message"),
            (&[("message", "{body}{body}")][..], "message"),
            (&[("format", "{algorithm}=")][..], "format"),
            (&[("format", "{body}{hex}")][..], "format"),
            (&[("format", "ü{hex}"), ("message", "body")][..], "format"),
            (&[("format", "{hex}")][..], "format"),
            (&[("format", "{key_id}{hex}"), ("message", "body")][..], "key_id"),
            (&[("message", "body"), ("timestamp_header", "X-Time")][..], "message"),
            (&[("timestamp_header", "x-signature")][..], "timestamp_header"),
        ] {
            assert_eq!(read(fields).expect_err("refused").0, field, "{fields:?}");
        }
    }
}
