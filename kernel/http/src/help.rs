//! The help pages of problems: `docs/errors/<code>.md`, compiled in, so that the page a server serves is the
//! page of that server's version.

struct Page {
    code: &'static str,
    text: &'static str,
}

macro_rules! pages {
    ($($code:literal)*) => {
        &[$(Page { code: $code, text: include_str!(concat!("../../../docs/errors/", $code, ".md")) }),*]
    };
}

/// Sorted by code; a test holds the list against the folder.
static PAGES: &[Page] = pages! {
    "binding_broken"
    "body_interrupted"
    "body_timeout"
    "body_too_large"
    "bound_to_itself"
    "bytes_missing"
    "call_too_large"
    "capability_denied"
    "channel_not_found"
    "compile_failed"
    "compiled_in"
    "component_too_large"
    "conflict"
    "contract_skew"
    "credential_closed"
    "credential_not_found"
    "digest_mismatch"
    "engine_overloaded"
    "execution_not_found"
    "execution_state"
    "fetch"
    "forbidden"
    "forbidden_privilege"
    "forbidden_tenant"
    "foreign_tenant"
    "internal"
    "internal_api_off"
    "invalid_attestation"
    "invalid_body"
    "invalid_credential"
    "invalid_manifest"
    "invalid_parameter"
    "invalid_path"
    "invalid_playbook"
    "memory"
    "method_not_allowed"
    "needs_grant"
    "no_interpreter"
    "no_manifest"
    "not_a_component"
    "not_a_service"
    "not_found"
    "not_overridable"
    "not_ready"
    "nothing_before"
    "other_world"
    "output"
    "pin_broken"
    "playbook_in_use"
    "playbook_not_found"
    "playbook_too_large"
    "plugin_failure"
    "plugin_not_found"
    "quarantined"
    "quota"
    "reserved_path"
    "ring_taken"
    "ring_too_high"
    "service_unavailable"
    "signature_required"
    "source_broken"
    "store_unavailable"
    "timeout"
    "token_not_found"
    "trap"
    "unauthenticated"
    "unknown_route"
    "version_in_use"
    "version_not_found"
    "version_taken"
    "wallet_key"
};

/// The first line of the page.
pub fn title(code: &str) -> &'static str {
    let text = page(code).unwrap_or_default();
    text.lines().next().and_then(|line| line.strip_prefix("# ")).unwrap_or("a problem without a help page")
}

pub fn page(code: &str) -> Option<&'static str> {
    let at = PAGES.binary_search_by_key(&code, |page| page.code).ok()?;
    Some(PAGES[at].text)
}

/// All codes with their titles.
pub fn index() -> String {
    let mut text = "# Problems this server can answer with\n\nEach has a page at /errors/<code>.\n\n".to_owned();
    for page in PAGES {
        text.push_str(&format!("- {}: {}\n", page.code, title(page.code)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_the_folder() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .expect("the folder is part of the project")
            .map(|entry| entry.expect("readable").file_name().to_string_lossy().trim_end_matches(".md").to_owned())
            .collect();
        files.sort();
        let listed: Vec<_> = PAGES.iter().map(|page| page.code).collect();
        assert_eq!(listed, files);
    }

    #[test]
    fn every_page_has_a_title_a_meaning_a_cause_and_a_fix() {
        for page in PAGES {
            assert_ne!(title(page.code), title("no such code"), "{}", page.code);
            for part in ["## Why", "## What to do"] {
                assert!(page.text.contains(part), "{} has no part `{part}`", page.code);
            }
        }
    }

    #[test]
    fn the_index_names_every_page() {
        assert!(PAGES.iter().all(|page| index().contains(&format!("- {}: ", page.code))));
    }
}
