//! What the next request of a redirect is.
//!
//! A redirect is followed by sending another request, so the host checks the name and the address of every hop as it
//! checks the first. What is decided here is only what that request looks like: where it goes, its method, and
//! which headers go along. To another origin only headers that say what is wanted are sent on; any other may be a secret
//! of the first host, whatever it is called.

/// How a placeholder of a secret begins.
const PLACEHOLDER: &str = "NOETL~SECRET~";

/// Headers that tell another host nothing it should not know.
const SAFE: [&str; 7] =
    ["accept", "accept-charset", "accept-language", "cache-control", "if-none-match", "range", "user-agent"];

/// A hop.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    /// Whether the body is sent there too.
    pub(crate) body: bool,
}

/// Why a redirect is not followed although it could be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// From `https` to `http`.
    Downgrade(String),
}

/// The request an answer redirects to; none when it does not redirect, or when following it would send a body to whom it
/// was not meant for. A server that says 307 or 308 has not taken the body, so within its origin it is sent again.
pub(crate) fn next(
    sent: (&str, &str, &[(String, String)]),
    has_body: bool,
    status: u16,
    location: Option<&str>,
) -> Result<Option<Hop>, Refused> {
    let (method, url, headers) = sent;
    let Some(location) = location.filter(|_| matches!(status, 301..=303 | 307 | 308)) else { return Ok(None) };
    let becomes_get = status == 303 && method != "HEAD" || matches!(status, 301 | 302) && method == "POST";
    let to = join(url, location);
    let same_origin = origin(url).eq_ignore_ascii_case(origin(&to));
    let body = has_body && same_origin && matches!(status, 307 | 308);
    // A `PUT` that goes on without its body would empty what it was to replace.
    if has_body && !becomes_get && !body {
        return Ok(None);
    }
    if is_https(url) && !is_https(&to) {
        return Err(Refused::Downgrade(to));
    }
    let method = if becomes_get { "GET" } else { method };
    let goes_along = |name: &str| {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        (same_origin || SAFE.iter().any(|safe| is(safe))) && (body || !(has_body && is("content-type")))
    };
    // A harmless name can have a secret as its value, and the host would refuse to send that elsewhere.
    let stays = |value: &str| !same_origin && value.contains(PLACEHOLDER);
    let headers = headers.iter().filter(|(name, value)| goes_along(name) && !stays(value)).cloned().collect();
    Ok(Some(Hop { method: method.to_owned(), url: to, headers, body }))
}

fn is_https(url: &str) -> bool {
    url.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("https://"))
}

/// Scheme, host and port as they are written.
fn origin(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    &url[..end]
}

/// A reference beside the address it was found at. Dots in paths are left for the host, which resolves them when it reads
/// the address.
fn join(base: &str, reference: &str) -> String {
    let reference = reference.split('#').next().unwrap_or_default().trim();
    let scheme = reference.split(['/', '?']).next().is_some_and(|first| first.ends_with(':'));
    let base = base.split('#').next().unwrap_or_default();
    let (origin, without_query) = (origin(base), base.split('?').next().unwrap_or_default());
    match reference {
        "" => base.to_owned(),
        _ if scheme => reference.to_owned(),
        _ if reference.starts_with("//") => {
            format!("{}:{reference}", origin.split("://").next().unwrap_or("https"))
        }
        _ if reference.starts_with('/') => format!("{origin}{reference}"),
        _ if reference.starts_with('?') => format!("{without_query}{reference}"),
        _ => {
            let folder =
                without_query.rfind('/').filter(|at| *at >= origin.len()).map_or(origin, |at| &without_query[..at]);
            format!("{folder}/{reference}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_read_beside_the_address_it_was_found_at() {
        let base = "https://a.example:8443/x/y?q=1#f";
        for (reference, expected) in [
            ("http://b.example/", "http://b.example/"),
            ("//b.example/z", "https://b.example/z"),
            ("/z?r=2", "https://a.example:8443/z?r=2"),
            ("?r=2", "https://a.example:8443/x/y?r=2"),
            ("z", "https://a.example:8443/x/z"),
            ("../z", "https://a.example:8443/x/../z"),
            ("", "https://a.example:8443/x/y?q=1"),
            ("/z#there", "https://a.example:8443/z"),
        ] {
            assert_eq!(join(base, reference), expected, "{reference}");
        }
        assert_eq!(join("https://a.example", "z"), "https://a.example/z");
    }

    fn headers() -> Vec<(String, String)> {
        [("Accept", "text/html"), ("Authorization", "Bearer x"), ("X-Api-Key", "k"), ("content-type", "text/plain")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec()
    }

    #[test]
    fn a_placeholder_stays_with_its_origin_whatever_the_header_is_called() {
        let headers = vec![("user-agent".to_owned(), "me NOETL~SECRET~a~token~END".to_owned())];
        let to = |location| {
            let hop = next(("GET", "https://a.example/", &headers), false, 302, Some(location));
            hop.expect("followed").expect("a hop").headers.len()
        };
        assert_eq!((to("https://b.example/"), to("/there")), (0, 1));
    }

    #[test]
    fn another_origin_gets_no_header_that_could_be_a_secret() {
        let hop =
            next(("GET", "https://a.example/", &headers()), false, 302, Some("https://b.example/")).expect("goes");
        assert_eq!(hop.expect("a hop").headers, [("Accept".to_owned(), "text/html".to_owned())]);
        let hop = next(("GET", "https://a.example/", &headers()), false, 302, Some("https://a.example:444/"));
        assert_eq!(hop.expect("goes").expect("a hop").headers.len(), 1, "another port is another origin");
        let hop = next(("GET", "http://a.example/", &headers()), false, 302, Some("https://a.example/"));
        assert_eq!(hop.expect("goes").expect("a hop").headers.len(), 1, "and so is another scheme");
        let hop = next(("GET", "https://a.example/", &headers()), false, 302, Some("/b")).expect("goes");
        assert_eq!(hop.expect("a hop").headers.len(), 4);
    }

    #[test]
    fn a_body_is_sent_again_only_to_its_origin_and_where_the_server_has_not_taken_it() {
        let post = |status| next(("POST", "https://a.example/", &headers()), true, status, Some("/b"));
        for status in [307, 308] {
            let hop = post(status).expect("goes").expect("a hop");
            assert_eq!((hop.method.as_str(), hop.headers.len(), hop.body), ("POST", 4, true), "with its type");
            let elsewhere = next(("POST", "https://a.example/", &[]), true, status, Some("https://b.example/"));
            assert_eq!(elsewhere, Ok(None), "{status}");
        }
        for (method, status) in [("PUT", 301), ("PATCH", 302), ("DELETE", 302)] {
            let followed = next((method, "https://a.example/", &headers()), true, status, Some("/b"));
            assert_eq!(followed, Ok(None), "{method} {status}");
        }
        let without = next(("PUT", "https://a.example/", &headers()), false, 301, Some("/b"));
        assert_eq!(without.expect("goes").expect("a hop").method, "PUT", "there is no body to lose");
        let hop = post(303).expect("goes").expect("a hop");
        let expected = ("GET", 3, false);
        assert_eq!((hop.method.as_str(), hop.headers.len(), hop.body), expected, "without the type of what is gone");
    }

    #[test]
    fn what_is_no_redirect_is_an_answer_and_a_downgrade_is_refused() {
        assert_eq!(next(("GET", "https://a.example/", &[]), false, 200, Some("/b")), Ok(None));
        assert_eq!(next(("GET", "https://a.example/", &[]), false, 304, None), Ok(None));
        let refused = next(("GET", "https://a.example/", &[]), false, 301, Some("http://a.example/"));
        assert_eq!(refused, Err(Refused::Downgrade("http://a.example/".to_owned())));
    }
}
