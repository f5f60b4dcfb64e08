//! What stands for a secret until a request leaves: `NOETL~SECRET~<alias>~<field>~<tag>~END`.
//!
//! A placeholder is text like any other to whoever carries it: it goes through templates, guests, events and logs. The
//! driver that makes the connection finds it and puts the value in its place, and no one else can. So it is made of
//! characters that survive being written into an address, a form or JSON, and nothing else is ever taken for one: in the
//! names every byte but letters, digits, `_` and `-` is written as `.XX`, and only that one way of writing a name is read.
//!
//! The tag says who wrote it. Data from outside can have any text in it, also one of this form, and must not be able to
//! have a secret put in: so whoever may write placeholders has the tenant's [`Seal`], and the tag is made with it. A text
//! whose tag is wrong is a text like any other.
//!
//! Some writers of forms encode `~` as well, so it is found as `%7E` too.

use std::fmt;
use std::ops::Range;

use sha2::{Digest as _, Sha256};

const BEGIN: &str = "NOETL";
const SECRET: &str = "SECRET";
const END: &str = "END";
/// What a seal is called among the values that an execution is started with; no environment variable has such a name.
pub const SEAL: &str = "NOETL~SEAL";
/// The field of what stands for something that was made of a secret: an encoding, a part. Nothing is ever put in its place.
pub const COMPUTED: &str = "computed";
/// Bytes of a tag: far more than anybody can try.
const TAG_BYTES: usize = 16;
/// What the hash takes in at once.
const BLOCK: usize = 64;

/// A placeholder in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Where in the text.
    pub at: Range<usize>,
    pub alias: String,
    pub field: String,
    /// Not checked yet: [`Seal::is_on`].
    pub tag: String,
}

/// What the placeholders of one tenant are written with.
#[derive(Clone, PartialEq, Eq)]
pub struct Seal(String);

/// Without the text: who has it can write placeholders.
impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    /// The seal of a tenant, of the key there is for all of them.
    pub fn of(key: &[u8], tenant: &str) -> Self {
        Self(hex::encode(keyed(key, &["noetl placeholders 1", tenant])))
    }

    /// As it is handed to whoever renders the tenant's playbooks.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The placeholder of one field of a credential.
    pub fn write(&self, alias: &str, field: &str) -> String {
        let mut text = String::with_capacity(64 + alias.len() + field.len());
        text.push_str(BEGIN);
        text.push('~');
        text.push_str(SECRET);
        for name in [alias, field] {
            text.push('~');
            write_name(name, &mut text);
        }
        text.push('~');
        text.push_str(&self.tag(alias, field));
        text.push('~');
        text.push_str(END);
        text
    }

    /// Whether this placeholder was written with it.
    pub fn is_on(&self, found: &Found) -> bool {
        let wanted = self.tag(&found.alias, &found.field);
        // Every byte is looked at, so that the time says nothing about where they differ.
        let differs = wanted.bytes().zip(found.tag.bytes()).fold(0, |differs, (one, other)| differs | (one ^ other));
        wanted.len() == found.tag.len() && differs == 0
    }

    fn tag(&self, alias: &str, field: &str) -> String {
        hex::encode(&keyed(self.0.as_bytes(), &[alias, field])[..TAG_BYTES])
    }
}

/// HMAC-SHA256 over texts, each with its length before it.
fn keyed(key: &[u8], parts: &[&str]) -> [u8; 32] {
    let mut message = Vec::new();
    for part in parts {
        message.extend_from_slice(&(part.len() as u64).to_le_bytes());
        message.extend_from_slice(part.as_bytes());
    }
    hmac(key, &message)
}

fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut block = [0; BLOCK];
    if key.len() > BLOCK {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().into()
}

fn write_name(name: &str, text: &mut String) {
    for byte in name.bytes() {
        if is_plain(byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!(".{byte:02X}"));
        }
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Whether a text has something in it that could be a placeholder; far cheaper than looking.
pub fn may_have(text: &str) -> bool {
    text.contains(BEGIN)
}

/// The parts of bytes that a placeholder can be in: what it is made of, without a break, and begun as one is.
pub fn runs(bytes: &[u8]) -> Vec<Range<usize>> {
    let is_part = |byte: &u8| is_plain(*byte) || matches!(byte, b'~' | b'.' | b'%');
    let begin = BEGIN.as_bytes();
    let (mut runs, mut from) = (Vec::new(), 0);
    while let Some(start) = bytes[from..].windows(begin.len()).position(|window| window == begin).map(|at| from + at) {
        let end = start + bytes[start..].iter().take_while(|byte| is_part(byte)).count();
        runs.push(start..end);
        from = end;
    }
    runs
}

/// All placeholders of a text, in order.
pub fn find(text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find(BEGIN).map(|at| from + at) {
        match read(text, start) {
            Some(one) => {
                from = one.at.end;
                found.push(one);
            }
            None => from = start + BEGIN.len(),
        }
    }
    found
}

/// The placeholder that begins here.
fn read(text: &str, start: usize) -> Option<Found> {
    let mut rest = Rest { text, at: start };
    rest.word(BEGIN)?;
    rest.separator()?;
    rest.word(SECRET)?;
    rest.separator()?;
    let alias = rest.name()?;
    rest.separator()?;
    let field = rest.name()?;
    rest.separator()?;
    let tag = rest.name()?;
    rest.separator()?;
    rest.word(END)?;
    Some(Found { at: start..rest.at, alias, field, tag })
}

struct Rest<'t> {
    text: &'t str,
    at: usize,
}

impl Rest<'_> {
    fn word(&mut self, word: &str) -> Option<()> {
        self.text[self.at..].starts_with(word).then(|| self.at += word.len())
    }

    fn separator(&mut self) -> Option<()> {
        self.word("~").or_else(|| self.word("%7E")).or_else(|| self.word("%7e"))
    }

    /// A name as [`Seal::write`] writes it, and not empty.
    fn name(&mut self) -> Option<String> {
        let mut bytes = Vec::new();
        while let Some(byte) = self.text.as_bytes().get(self.at).copied() {
            if is_plain(byte) {
                bytes.push(byte);
                self.at += 1;
            } else if byte == b'.' {
                let digits = self.text.get(self.at + 1..self.at + 3)?;
                let upper = |digit: u8| matches!(digit, b'0'..=b'9' | b'A'..=b'F');
                let escaped = digits.bytes().all(upper).then(|| u8::from_str_radix(digits, 16).ok())??;
                if is_plain(escaped) {
                    return None;
                }
                bytes.push(escaped);
                self.at += 3;
            } else {
                break;
            }
        }
        String::from_utf8(bytes).ok().filter(|name| !name.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seal() -> Seal {
        Seal::of(b"a key", "main")
    }

    fn write(alias: &str, field: &str) -> String {
        seal().write(alias, field)
    }

    #[test]
    fn a_placeholder_is_written_as_agreed() {
        let written = write("a b/ü", "x.y");
        let tag = written.strip_prefix("NOETL~SECRET~a.20b.2F.C3.BC~x.2Ey~").and_then(|rest| rest.strip_suffix("~END"));
        assert!(
            tag.is_some_and(|tag| tag.len() == 32 && tag.bytes().all(|byte| byte.is_ascii_hexdigit())),
            "{written}"
        );
    }

    #[test]
    fn a_tag_is_good_for_one_field_of_one_credential_of_one_tenant() {
        let found = |text: &str| find(text).remove(0);
        assert!(seal().is_on(&found(&write("github", "token"))));
        assert!(seal().is_on(&found(&write("github", "token").replace('~', "%7E"))));
        let tag = found(&write("github", "token")).tag;
        for other in [
            Seal::of(b"a key", "acme").write("github", "token"),
            Seal::of(b"b key", "main").write("github", "token"),
            format!("NOETL~SECRET~gitlab~token~{tag}~END"),
            format!("NOETL~SECRET~github~tokens~{tag}~END"),
            format!("NOETL~SECRET~github~token~{}~END", &tag[1..]),
            format!("NOETL~SECRET~github~token~{tag}0~END"),
            format!("NOETL~SECRET~github~token~{}~END", "0".repeat(32)),
            format!("NOETL~SECRET~github~token~{}~END", tag.to_uppercase()),
        ] {
            assert!(!seal().is_on(&found(&other)), "{other}");
        }
        assert!(!format!("{:?}", seal()).contains(seal().text()));
    }

    /// RFC 4231, cases 1, 2 and 6.
    #[test]
    fn the_hash_with_a_key_is_the_usual_one() {
        for (key, message, expected) in [
            (vec![0x0b; 20], "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
            (
                b"Jefe".to_vec(),
                "what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                vec![0xaa; 131],
                "Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ] {
            assert_eq!(hex::encode(hmac(&key, message.as_bytes())), expected);
        }
    }

    #[test]
    fn nothing_but_a_placeholder_is_taken_for_one() {
        for text in [
            "",
            "NOETL",
            "NOETL~SECRET",
            "NOETL~SECRET~a~b~0f",
            "NOETL~SECRET~a~b~0f~EN",
            "NOETL~SECRET~a~b~END",
            "NOETL~SECRET~~b~0f~END",
            "NOETL~SECRET~a~~0f~END",
            "NOETL~SECRET~a~b~~END",
            "NOETL~SECRET~a~END",
            "NOETL~SECRET~a b~c~0f~END",
            "NOETL~SECRET~a.2~c~0f~END",
            "NOETL~SECRET~a.61~c~0f~END",
            "NOETL~SECRET~a.2f~c~0f~END",
            "NOETL~SECRET~a.FF~c~0f~END",
            "noetl~secret~a~b~0f~end",
            "NOETL-SECRET-a-b-0f-END",
            "NOETL~SECRET~ü~b~0f~END",
            "NOETL~SECRET~a.é~b~0f~END",
        ] {
            assert_eq!(find(text), [], "{text}");
        }
    }

    #[test]
    fn what_they_can_be_in_is_found_in_bytes() {
        let written = write("one", "t");
        let bytes =
            [b"\xff NOET ", written.as_bytes(), b"x\xfe", written.replace('~', "%7E").as_bytes(), b" NOETL"].concat();
        let runs = runs(&bytes);
        assert_eq!(runs.len(), 3);
        let found = |run: &Range<usize>| find(std::str::from_utf8(&bytes[run.clone()]).expect("ASCII")).len();
        assert_eq!(runs.iter().map(found).collect::<Vec<_>>(), [1, 1, 0]);
    }

    #[test]
    fn they_are_found_side_by_side_in_text_and_in_forms() {
        let text = format!("?a={}&b={}x{}", write("one", "t"), write("two", "t"), write("three", "t"));
        let aliases: Vec<_> = find(&text).into_iter().map(|found| found.alias).collect();
        assert_eq!(aliases, ["one", "two", "three"]);
        assert_eq!(find("NOETL%7ESECRET%7Ea%7Eb%7E0f%7eEND")[0].field, "b");
        assert_eq!(find("NOETL~SECRET~a~NOETL~SECRET~b~c~0f~END").len(), 1, "a broken one does not hide the next");
    }

    proptest! {
        #[test]
        fn what_is_written_is_found(before in "[^N]{0,9}", alias in ".{1,20}", field in ".{1,20}", after in ".{0,9}") {
            let text = format!("{before}{}{after}", write(&alias, &field));
            let found = find(&text);
            prop_assert_eq!(&found[0].alias, &alias);
            prop_assert_eq!(&found[0].field, &field);
            prop_assert_eq!(&text[found[0].at.clone()], write(&alias, &field));
        }

        #[test]
        fn it_survives_the_encodings_it_is_carried_through(alias in ".{1,20}", field in ".{1,20}") {
            let written = write(&alias, &field);
            prop_assert!(written.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)));
            prop_assert_eq!(serde_json::to_string(&written).expect("text"), format!("\"{written}\""));
        }

        #[test]
        fn any_text_is_survived_and_what_is_found_is_written_the_same(text in "(NOETL|~|%7E|SECRET|END|[a.2F é]){0,20}") {
            for found in find(&text) {
                let plain = text[found.at.clone()].replace("%7E", "~").replace("%7e", "~");
                let written = write(&found.alias, &found.field);
                prop_assert_eq!(plain.split('~').take(4).collect::<Vec<_>>(), written.split('~').take(4).collect::<Vec<_>>());
                prop_assert!(!seal().is_on(&found), "nobody guesses a tag");
            }
        }
    }
}
