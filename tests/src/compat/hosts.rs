//! Addresses in a document: which of them lead to something that is here under another address.

/// Hosts and what is in their place; a host without a port means all of its ports.
pub(super) struct Hosts<'a> {
    pub rows: Vec<(&'a str, &'a str)>,
}

impl Hosts<'_> {
    /// The text with every known host replaced.
    pub fn replaced(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, authority, after)) = next(rest) {
            match self.instead_of(authority) {
                Some(base) => {
                    out.push_str(before);
                    out.push_str(base);
                }
                None => out.push_str(&rest[..rest.len() - after.len()]),
            }
            rest = after;
        }
        out + rest
    }

    /// Hosts of a text that nothing is in the place of, loopback aside.
    pub fn unknown<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let mut found = Vec::new();
        let mut rest = text;
        while let Some((_, authority, after)) = next(rest) {
            let host = authority.split(':').next().unwrap_or(authority);
            let is_local = matches!(host, "127.0.0.1" | "localhost");
            if !is_local && !host.is_empty() && self.instead_of(authority).is_none() {
                found.push(host);
            }
            rest = after;
        }
        found
    }

    fn instead_of(&self, authority: &str) -> Option<&str> {
        let host = authority.split(':').next().unwrap_or(authority);
        let row = self
            .rows
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(authority) || known.eq_ignore_ascii_case(host));
        row.map(|(_, base)| *base)
    }
}

/// The next address: the text before it, its host and port, and the text behind those.
fn next(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let at = from + text[from..].find("://")?;
        let scheme = ["https", "http"].into_iter().find(|scheme| text[..at].ends_with(scheme));
        let Some(scheme) = scheme else {
            from = at + 3;
            continue;
        };
        let after = &text[at + 3..];
        let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || ".-:_".contains(c))).unwrap_or(after.len());
        return Some((&text[..at - scheme.len()], &after[..end], &after[end..]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_hosts_are_replaced_and_others_named() {
        let hosts =
            Hosts { rows: vec![("api.test:5555", "http://127.0.0.1:1"), ("httpbin.org", "http://127.0.0.1:2")] };
        let text =
            "a: http://api.test:5555/x\nb: 'https://httpbin.org/get?u=http://api.test:5555'\nc: https://other.org/";
        let wanted = "a: http://127.0.0.1:1/x\nb: 'http://127.0.0.1:2/get?u=http://127.0.0.1:1'\nc: https://other.org/";
        assert_eq!(hosts.replaced(text), wanted);
        assert_eq!(hosts.unknown(text), ["other.org"]);
        assert_eq!(hosts.replaced("noetl://payload and http://{{ host }}/"), "noetl://payload and http://{{ host }}/");
        assert!(hosts.unknown("http://{{ host }}/ http://localhost:80").is_empty());
    }
}
