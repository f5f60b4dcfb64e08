//! Names whose values are secrets, wherever they occur: JSON fields, `name=value` pairs, headers.
//!
//! A name is compared whole, without case and without `_`, `-` and spaces, so that `api_key`, `apiKey` and
//! `API-Key` are one name while `max_tokens`, `next_page_token` and `author` are others. Names that usually
//! carry an *alias* of a credential (`auth`, `credential`) are left out on purpose: an alias is no secret, and a
//! log without it says nothing.

/// Longest name in the list; a longer word cannot be one of them.
const LONGEST: usize = 24;

/// Sorted, squashed (lower case, no separators).
const SECRETS: [&str; 41] = [
    "accesskeysecret",
    "accesstoken",
    "apikey",
    "apisecret",
    "apitoken",
    "authorization",
    "authtoken",
    "awssecretaccesskey",
    "awssecretkey",
    "bearertoken",
    "clientsecret",
    "connectionstring",
    "cookie",
    "databasepassword",
    "dbpassword",
    "decryptionkey",
    "encryptionkey",
    "idtoken",
    "jwt",
    "masterkey",
    "oauthtoken",
    "passphrase",
    "passwd",
    "password",
    "pgpassword",
    "privatekey",
    "proxyauthorization",
    "pwd",
    "refreshtoken",
    "secret",
    "secretaccesskey",
    "secretkey",
    "secretvalue",
    "sessiontoken",
    "setcookie",
    "sshkey",
    "token",
    "userpassword",
    "xaccesstoken",
    "xapikey",
    "xauthtoken",
];

/// What kind of secret a name announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `authorization`: its value starts with a scheme that may stay.
    Authorization,
    /// A header whose whole line is the secret.
    Cookie,
    /// A header whose value is one word.
    Header,
    /// A field of a document or a parameter.
    Field,
}

pub fn is_secret(name: &str) -> bool {
    kind_of(name).is_some()
}

pub fn kind_of(name: &str) -> Option<Kind> {
    let mut squashed = [0u8; LONGEST];
    let mut length = 0;
    for byte in name.bytes() {
        if matches!(byte, b'_' | b'-' | b' ') {
            continue;
        }
        *squashed.get_mut(length)? = byte.to_ascii_lowercase();
        length += 1;
    }
    let squashed = std::str::from_utf8(&squashed[..length]).ok()?;
    SECRETS.binary_search(&squashed).ok()?;
    Some(match squashed {
        "authorization" | "proxyauthorization" => Kind::Authorization,
        "cookie" | "setcookie" => Kind::Cookie,
        "xapikey" | "xauthtoken" | "xaccesstoken" => Kind::Header,
        _ => Kind::Field,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_fits() {
        assert!(SECRETS.is_sorted());
        assert!(SECRETS.iter().all(|name| name.len() <= LONGEST));
    }

    #[test]
    fn spelling_does_not_matter_but_the_whole_name_does() {
        for name in ["api_key", "apiKey", "API-KEY", "Set-Cookie", "AWS_SECRET_ACCESS_KEY", "client secret"] {
            assert!(is_secret(name), "{name}");
        }
        for name in
            ["author", "authors", "max_tokens", "tokens", "certainty", "cert", "secretary", "token_count", "", "é"]
        {
            assert!(!is_secret(name), "{name}");
        }
    }
}
