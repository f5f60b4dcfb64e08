use super::*;

impl Forms {
    fn contains(&self, form: &str) -> bool {
        self.0.contains_key(form)
    }

    fn is_found_in(&self, text: &str) -> bool {
        self.0.keys().any(|form| text.contains(form))
    }
}

#[test]
fn what_encoders_make_of_a_value_is_among_its_forms() {
    let forms = of("p@ss w/ö\"rd+1");
    for form in [
        "p@ss w/ö\"rd+1",
        "p@ss w/ö\\\"rd+1",
        "p@ss w/\\u00f6\\\"rd+1",
        "p@ss w\\/ö\\\"rd+1",
        "p@ss w/ö\\\\\\\"rd+1",
        "p%40ss%20w%2F%C3%B6%22rd%2B1",
        "p%40ss%20w%2f%c3%b6%22rd%2b1",
        "p%40ss+w%2F%C3%B6%22rd%2B1",
        "p@ss%20w/%C3%B6%22rd+1",
        "cEBzcyB3L8O2InJkKzE=",
        "p%2540ss%2520w%252F%25C3%25B6%2522rd%252B1",
        "p%2540ss%2520w%252f%25c3%25b6%2522rd%252b1",
        "p@ss w/ö&quot;rd+1",
        "p@ss w/ö&#34;rd+1",
        "p@ss w/&#246;&#34;rd+1",
        "p@ss w/&#xf6;&#x22;rd+1",
        "7040737320772fc3b62272642b31",
        "7040737320772FC3B62272642B31",
        "p@ss w\\u002F\\u00F6\\u0022rd+1",
        "p\\u0040ss\\u0020w\\u002f\\u00f6\\u0022rd\\u002b1",
    ] {
        assert!(forms.contains(form), "{form} is not among {forms:#?}");
    }
}

#[test]
fn base64_finds_a_value_wherever_it_begins() {
    for value in ["secret", "secret1", "secret-value", "~~~???>>>"] {
        let forms = of(value);
        for before in ["", "a", "ab", "abc", "user:"] {
            for after in ["", "z", "zz", "zzz"] {
                let whole = format!("{before}{value}{after}");
                for text in [STANDARD.encode(&whole), URL_SAFE_NO_PAD.encode(&whole)] {
                    assert!(forms.is_found_in(&text), "{whole} in {text}");
                }
            }
        }
    }
}

#[test]
fn what_pages_make_of_a_value_is_among_its_forms() {
    let forms = of("a<b>&'c'\"d\"");
    for form in [
        "a&lt;b&gt;&amp;'c'\"d\"",
        "a&lt;b&gt;&amp;'c'&quot;d&quot;",
        "a&lt;b&gt;&amp;&#39;c&#39;&quot;d&quot;",
        "a&lt;b&gt;&amp;&#x27;c&#x27;&quot;d&quot;",
        "a&lt;b&gt;&amp;&#39;c&#39;&#34;d&#34;",
        "a&#60;b&#62;&#38;&#39;c&#39;&#34;d&#34;",
        "a\\u003cb\\u003e\\u0026'c'\\\"d\\\"",
        "a\\u003Cb\\u003E\\u0026\\u0027c\\u0027\\\"d\\\"",
        "&#97;&#60;&#98;&#62;&#38;&#39;&#99;&#39;&#34;&#100;&#34;",
    ] {
        assert!(forms.contains(form), "{form} is not among {forms:#?}");
    }
}

#[test]
fn a_long_value_is_not_spelt_letter_by_letter() {
    let long = of(&"x".repeat(LONGEST_SPELT + 1));
    assert!(long.iter().all(|(form, _)| form.len() <= 3 * LONGEST_SPELT), "it would cost more than it finds");
}

#[test]
fn a_long_value_has_the_usual_forms_and_no_more() {
    let long = "<\"a/ö ".repeat(200);
    let forms = of(&long);
    for part in
        ["<\"a/ö ", "<\\\"a/ö ", "<\\\"a/\\u00f6 ", "%3C%22a%2F%C3%B6%20", "%3c%22a%2f%c3%b6%20", "3c22612fc3b620"]
    {
        assert!(forms.contains(&part.repeat(200)), "{part}");
    }
    assert!(forms.contains(&STANDARD.encode(&long)));
    assert!(!forms.contains(&"&lt;&quot;a/ö ".repeat(200)));
    assert!(forms.bytes() < 100 * long.len());
}

#[test]
fn a_plain_value_has_few_forms_and_none_is_short() {
    let forms = of("secret");
    assert!(forms.0.len() <= 24, "{forms:?}");
    assert!(forms.iter().all(|(form, _)| form.len() >= 6), "{forms:?}");
}

#[test]
fn what_writers_of_json_escape_by_number_is_found_in_both_cases() {
    for (value, text) in [
        ("k+/e=y'<", r"k\u002B/e=y\u0027\u003C"),
        ("k+/e=y'<", r"k\u002b/e=y\u0027\u003c"),
        ("k+/e=y'<", r"k+/e\u003dy\u0027\u003c"),
        ("k+/e=y'<", r"k+/e\u003Dy\u0027\u003C"),
        ("schlüs\"el+", r"schl\u00FCs\u0022el\u002B"),
    ] {
        let long = |text: &str| text.repeat(LONGEST_SPELT / 4);
        assert!(of(value).0.get(text).is_some_and(|direct| *direct), "{text}");
        assert!(of(&long(value)).contains(&long(text)), "{text}, many times");
    }
}

#[test]
fn the_value_as_its_place_needs_it_is_direct_and_what_is_computed_of_it_is_not() {
    let forms = of("p@ss/wörd");
    for (form, direct) in [
        ("p@ss/wörd", true),
        ("p@ss\\/wörd", true),
        ("p@ss/w\\u00f6rd", true),
        ("p%40ss%2Fw%C3%B6rd", true),
        ("p%2540ss%252Fw%25C3%25B6rd", false),
        ("70:40:73:73:2f:77:c3:b6:72:64", false),
        ("%70%40%73%73%2f%77%c3%b6%72%64", false),
        ("&#112;&#64;&#115;&#115;&#47;&#119;&#246;&#114;&#100;", false),
    ] {
        assert_eq!(forms.0.get(form), Some(&direct), "{form}");
    }
    assert_eq!(forms.0.get(&STANDARD.encode("p@ss/wörd")), Some(&false));
}

/// 120 letters and digits without a pattern.
fn key() -> String {
    (0..40u32).map(|n| format!("{:03x}", n.wrapping_mul(2_654_435_761) >> 20)).collect::<String>()
}

#[test]
fn of_a_long_value_what_was_cut_off_or_broken_into_lines_is_found() {
    let (key, forms) = (key(), of_all_parts(&key()));
    assert!(forms.is_found_in(&format!("invalid key {}...", &key[..40])));
    assert!(forms.is_found_in(&format!("...{}", &key[70..])));
    let letters = STANDARD.encode(&key);
    for end in ["\n", "\r\n", "\\n"] {
        let lines: Vec<&str> = letters.as_bytes().chunks(76).filter_map(|line| str::from_utf8(line).ok()).collect();
        assert!(forms.contains(&lines.join(end)));
    }
    assert!(forms.is_found_in(&STANDARD.encode(format!("user:{key}"))[..60]));
    assert!(forms.bytes() < 100 * key.len(), "{}", forms.bytes());
}
