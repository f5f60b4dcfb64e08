//! The text of a body, by what its media type says of it.
//!
//! UTF-8 where nothing is said. The others that servers still speak are few: the one that is called ISO-8859-1 and is
//! Windows' in truth, and UTF-16. What is none of these, or is not what it says, is no text.

/// The bytes 0x80 to 0x9f as Windows has them; the rest of it is ISO-8859-1.
const WINDOWS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘', '’',
    '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// The text without its mark of byte order; the bytes if they are no text.
pub fn text(media_type: &str, bytes: Vec<u8>) -> Result<String, Vec<u8>> {
    let charset = charset(media_type);
    // A mark says more than a header does.
    if let Some(rest) = bytes.strip_prefix(b"\xef\xbb\xbf") {
        return String::from_utf8(rest.to_vec()).map_err(|_| bytes);
    }
    let wide = match bytes.get(..2) {
        Some(b"\xff\xfe") => Some((true, 2)),
        Some(b"\xfe\xff") => Some((false, 2)),
        _ if charset == "utf-16le" => Some((true, 0)),
        _ if charset == "utf-16be" || charset == "utf-16" => Some((false, 0)),
        _ => None,
    };
    match (wide, charset.as_str()) {
        // Other bytes may begin like a mark by chance.
        (Some((little, mark)), _) if charset.starts_with("utf-16") || is_text(media_type) => {
            wide_text(&bytes[mark..], little).ok_or(bytes)
        }
        (_, "iso-8859-1" | "latin1" | "latin-1" | "windows-1252" | "cp1252") => {
            Ok(bytes.into_iter().map(narrow).collect())
        }
        _ => String::from_utf8(bytes).map_err(std::string::FromUtf8Error::into_bytes),
    }
}

/// The type itself, without its parameters, in small letters.
pub fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn is_text(media_type: &str) -> bool {
    let essence = essence(media_type);
    ["text/", "application/json", "application/xml"].iter().any(|start| essence.starts_with(start))
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
}

fn charset(media_type: &str) -> String {
    let said = media_type.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let charset = said.into_iter().find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    charset.map_or_else(String::new, |(_, value)| value.trim().trim_matches('"').to_ascii_lowercase())
}

fn narrow(byte: u8) -> char {
    match byte {
        0x80..=0x9f => WINDOWS[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

fn wide_text(bytes: &[u8], little: bool) -> Option<String> {
    let pairs = bytes.chunks(2).map(|pair| {
        let pair: [u8; 2] = pair.try_into().ok()?;
        Some(if little { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) })
    });
    String::from_utf16(&pairs.collect::<Option<Vec<u16>>>()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_in_the_charset_it_has() {
        for (media_type, bytes, expected) in [
            ("text/plain", "é".as_bytes(), Some("é")),
            ("text/plain; charset=UTF-8", "é".as_bytes(), Some("é")),
            ("text/plain; charset=ISO-8859-1", b"caf\xe9", Some("café")),
            ("text/plain;format=flowed; Charset=\"windows-1252\"", b"\x80 1", Some("€ 1")),
            ("application/json", b"\xef\xbb\xbf{}", Some("{}")),
            ("text/csv; charset=utf-16le", b"a\0b\0", Some("ab")),
            ("text/csv", b"\xff\xfea\0", Some("a")),
            ("text/csv; charset=utf-16", b"\xfe\xff\0a", Some("a")),
            ("text/csv; charset=utf-16le", b"a\0b", None),
            ("application/octet-stream", b"\xff\xfea\0", None),
            ("text/plain", b"\xff", None),
            ("text/plain; charset=koi8-r", b"\xc1", None),
        ] {
            assert_eq!(text(media_type, bytes.to_vec()).ok().as_deref(), expected, "{media_type}");
        }
    }
}
