//! AWS Signature Version 4 for S3 and what speaks like it, in a header.
//!
//! The rules are S3's own: the path is encoded once, and every body has its hash in `x-amz-content-sha256`. What the
//! receiver makes of an address is written into the address itself, so that there is one way to read it: a blank is `%20`
//! and never `+`, parameters are in order, and each has its `=`.
//!
//! Signed are the host, all headers of S3's own, and those that change what a request means. Others may be changed on the way
//! by whoever passes it on.

use std::collections::BTreeMap;

use noetl_contract::Digest;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use ring::hmac;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const SERVICE: &str = "s3";
const END: &str = "aws4_request";
/// Beside `host` and `x-amz-*`.
const SIGNED: [&str; 4] = ["content-md5", "content-type", "date", "range"];

const NAMES: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const PATHS: &AsciiSet = &NAMES.remove(b'/');

pub(super) struct Keys<'c> {
    pub access_key: &'c str,
    pub secret_key: &'c str,
    pub session_token: Option<&'c str>,
    pub region: &'c str,
}

pub(super) struct Request<'r> {
    pub method: &'r str,
    pub host: &'r str,
    pub url: &'r mut reqwest::Url,
    pub headers: &'r mut Vec<(String, String)>,
    pub body_sha256: &'r str,
}

/// Adds the headers of a signature, and answers with the signature alone; nothing if `now` is no date.
pub(super) fn sign(keys: &Keys<'_>, now: u64, request: Request<'_>) -> Option<String> {
    let time = jiff::Timestamp::from_second(i64::try_from(now).ok()?).ok()?.strftime("%Y%m%dT%H%M%SZ").to_string();
    let date = time.get(..8)?;
    let Request { method, host, url, headers, body_sha256 } = request;
    settle(url);
    let own = [
        ("x-amz-content-sha256", Some(body_sha256)),
        ("x-amz-date", Some(time.as_str())),
        ("x-amz-security-token", keys.session_token),
    ];
    for (name, value) in own {
        headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        headers.extend(value.map(|value| (name.to_owned(), value.to_owned())));
    }
    let signed = signed(host, headers);
    let names = signed.keys().map(String::as_str).collect::<Vec<_>>().join(";");
    let lines: String = signed.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let canonical =
        [method, url.path(), url.query().unwrap_or_default(), lines.as_str(), names.as_str(), body_sha256].join("\n");
    let scope = format!("{date}/{}/{SERVICE}/{END}", keys.region);
    let message =
        [ALGORITHM, time.as_str(), scope.as_str(), Digest::of(canonical.as_bytes()).hex().as_str()].join("\n");

    let mut key = mac(format!("AWS4{}", keys.secret_key).as_bytes(), date);
    for part in [keys.region, SERVICE, END] {
        key = mac(key.as_ref(), part);
    }
    let signature = hex::encode(mac(key.as_ref(), &message));
    let value =
        format!("{ALGORITHM} Credential={}/{scope}, SignedHeaders={names}, Signature={signature}", keys.access_key);
    headers.push(("authorization".to_owned(), value));
    Some(signature)
}

fn mac(key: &[u8], text: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
}

/// Writes an address in the one way that is signed.
fn settle(url: &mut reqwest::Url) {
    let path: Vec<u8> = percent_decode_str(url.path()).collect();
    url.set_path(&percent_encode(&path, PATHS).to_string());
    let again = |text: &str| {
        let text = text.replace('+', " ");
        let bytes: Vec<u8> = percent_decode_str(&text).collect();
        percent_encode(&bytes, NAMES).to_string()
    };
    let pairs = url.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let mut pairs: Vec<(String, String)> = pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (again(name), again(value)))
        .collect();
    pairs.sort();
    let query = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&");
    url.set_query((!query.is_empty()).then_some(query.as_str()));
}

/// By name; one that came more than once is a list.
fn signed(host: &str, headers: &[(String, String)]) -> BTreeMap<String, String> {
    let mut signed = BTreeMap::from([("host".to_owned(), host.to_owned())]);
    for (name, value) in headers {
        let name = name.to_ascii_lowercase();
        if !name.starts_with("x-amz-") && !SIGNED.contains(&name.as_str()) {
            continue;
        }
        let value = value.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        signed.entry(name).and_modify(|list| *list = format!("{list},{value}")).or_insert(value);
    }
    signed
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    const WELCOME: &str = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    /// 2013-05-24, as in the examples of S3's documentation.
    const THEN: u64 = 1_369_353_600;

    fn documented() -> Keys<'static> {
        Keys {
            access_key: "AKIAIOSFODNN7EXAMPLE",
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            session_token: None,
            region: "us-east-1",
        }
    }

    struct Sent {
        signature: String,
        url: String,
        headers: Vec<(String, String)>,
    }

    fn sent(keys: &Keys<'_>, now: u64, line: (&str, &str), headers: &[(&str, &str)], body_sha256: &str) -> Sent {
        let (method, url) = line;
        let mut url = reqwest::Url::parse(url).expect("an address");
        let host = super::super::host_of(&url);
        let mut headers: Vec<_> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let request = Request { method, host: &host, url: &mut url, headers: &mut headers, body_sha256 };
        let signature = sign(keys, now, request).expect("a date");
        Sent { signature, url: url.to_string(), headers }
    }

    #[test]
    fn the_examples_of_s3s_documentation_come_out() {
        let bucket = "https://examplebucket.s3.amazonaws.com";
        for (method, path, headers, body, wanted) in [
            (
                "GET",
                "/test.txt",
                &[("Range", "bytes=0-9"), ("Accept", "*/*")][..],
                EMPTY,
                "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
            ),
            (
                "PUT",
                "/test$file.text",
                &[("Date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")][..],
                WELCOME,
                "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
            ),
            (
                "GET",
                "/?lifecycle",
                &[("Accept", "*/*")][..],
                EMPTY,
                "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
            ),
            (
                "GET",
                "/?prefix=J&max-keys=2",
                &[("Accept", "*/*")][..],
                EMPTY,
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
            ),
        ] {
            let url = format!("{bucket}{path}");
            assert_eq!(sent(&documented(), THEN, (method, &url), headers, body).signature, wanted, "{method} {path}");
        }
    }

    #[test]
    fn keys_that_end_and_odd_names_are_signed_as_they_are_sent() {
        let keys =
            Keys { access_key: "AK", secret_key: "SK", session_token: Some("sess+token/1=="), region: "eu-central-1" };
        let given = [("content-type", "text/plain"), ("X-Amz-Meta-A", " one   two "), ("x-amz-date", "mine")];
        let line = ("PUT", "http://127.0.0.1:9000/b/a%20key+%C3%B6(x)?b&a=b+c");
        let sent = sent(&keys, 1_767_323_045, line, &given, WELCOME);
        assert_eq!(sent.url, "http://127.0.0.1:9000/b/a%20key%2B%C3%B6%28x%29?a=b%20c&b=");
        assert_eq!(sent.signature, "166c6809dca8392ffbaf9e93b8d296dbb2d2666903b3dae13a7282147faf72a2");
        let wanted = "AWS4-HMAC-SHA256 Credential=AK/20260102/eu-central-1/s3/aws4_request, \
             SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-meta-a;x-amz-security-token, \
             Signature=166c6809dca8392ffbaf9e93b8d296dbb2d2666903b3dae13a7282147faf72a2";
        assert_eq!(sent.headers.last(), Some(&("authorization".to_owned(), wanted.to_owned())));
        let dates: Vec<_> = sent.headers.iter().filter(|(name, _)| name == "x-amz-date").collect();
        assert_eq!(dates, [&("x-amz-date".to_owned(), "20260102T030405Z".to_owned())], "the host's alone");
    }
}
