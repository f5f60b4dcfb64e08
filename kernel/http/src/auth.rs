//! Who asks, and whether they may.
//!
//! A token belongs to one tenant or, without one, to an administrator. The rules, in full:
//! - A token without a tenant may see and change everything; the platform's own paths (`system/`, `tools/`)
//!   only with the privilege `system`.
//! - A tenant may see and change its own paths (`<tenant>/...`). It may see and call the platform's own but
//!   not change them. Another tenant's path is 403 whether it exists or not.
//! - Changes need the privilege `user`; to bind a service, `tenant`. A token with `pure` reads and calls.
//! - A tenant acts for itself alone: another name in `tenant` is 403.
//! - Playbooks and executions are a tenant's own. Another tenant's are 404, like those that do not exist: their
//!   ids and paths do not tell whose they are. Starting and changing them needs the privilege `user`.
//! - Credentials are a tenant's own, like playbooks. Everybody of the tenant may see which there are; to change them
//!   needs the privilege `user`, and to be answered with their values the right `credential:reveal`, which no privilege
//!   includes. The key of the wallet is an administrator's of the privilege `system`.
//! - The internal routes are for services: with the operator's service token, or with an administrator's of the
//!   privilege `system`.
//!
//! The check happens in one place, before the handler, by the [`Access`] of the route's row.

use axum::http::{HeaderMap, header};
use noetl_contract::{Digest, PluginPath, Ring, Tenant};
use noetl_registry::Actor;
use noetl_registry::tokens::{Right, TokenInfo, Tokens};

use crate::app::now_ms;
use crate::problem::Problem;

/// What a route asks of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Nothing, not even a token.
    Open,
    /// An administrator's token, unless the operator opened the metrics.
    Scrape,
    /// Any valid token; the handler limits what it answers to the caller's tenant.
    Token,
    /// A token that may see the plugin path.
    See,
    /// A token that may change the plugin path.
    Change,
    /// A token that may see the path and set something for its own tenant.
    OwnTenant,
    /// A token that may change something; what it is, is known once the body was read.
    Write,
    /// A token that may see the execution.
    Watch,
    /// A token that may change the execution.
    Steer,
    /// A service's token.
    Service,
}

/// A verified token.
pub struct Caller {
    pub token: TokenInfo,
    secret: String,
}

impl Caller {
    /// Verify the bearer token of a request.
    pub fn authenticate(headers: &HeaderMap, tokens: &Tokens) -> Result<Self, Problem> {
        let secret = bearer(headers).ok_or_else(Problem::unauthenticated)?;
        let token = tokens.verify(secret, now_ms()).ok_or_else(Problem::unauthenticated)?;
        Ok(Self { token, secret: secret.to_owned() })
    }

    /// Whether the token is still good; a long answer asks again now and then.
    pub fn is_still_valid(&self, tokens: &Tokens) -> bool {
        tokens.verify(&self.secret, now_ms()).is_some()
    }

    pub fn tenant(&self) -> Option<&Tenant> {
        self.token.tenant.as_ref()
    }

    pub fn is_admin(&self) -> bool {
        self.token.tenant.is_none()
    }

    pub fn actor(&self) -> Actor {
        self.token.actor()
    }

    /// The check of a route's row.
    pub fn check(&self, access: Access, plugin: Option<&PluginPath>) -> Result<(), Problem> {
        match (access, plugin) {
            // Whose an execution is, only the engine knows: `executions::check_owner` follows.
            (Access::Open | Access::Token | Access::Watch, _) => Ok(()),
            (Access::Scrape, _) => self.needs_admin("reading the metrics of all tenants"),
            (Access::Write | Access::Steer, _) => self.needs_privilege(Ring::User),
            (Access::Service, _) => self.needs_service(),
            (Access::See, Some(path)) => self.may_see(path),
            (Access::Change, Some(path)) => self.may_change(path).and_then(|()| self.needs_privilege(Ring::User)),
            (Access::OwnTenant, Some(path)) => self.may_see(path).and_then(|()| self.needs_privilege(Ring::User)),
            (Access::See | Access::Change | Access::OwnTenant, None) => {
                Err(Problem::internal("a route about plugins has no plugin path"))
            }
        }
    }

    pub fn may_see(&self, path: &PluginPath) -> Result<(), Problem> {
        if self.sees(path) { Ok(()) } else { Err(self.foreign(path)) }
    }

    /// Whether lists show the path to the caller.
    pub fn sees(&self, path: &PluginPath) -> bool {
        self.is_admin() || path.is_reserved() || path.owner().as_ref() == self.tenant()
    }

    pub fn may_change(&self, path: &PluginPath) -> Result<(), Problem> {
        if path.is_reserved() && !self.is_admin() {
            return Err(self.forbidden_tenant(format!(
                "`{path}` is the platform's own: changing it needs an administrator's token; a tenant can bind its \
                 own component in its place where the service is overridable"
            )));
        }
        if path.is_reserved() {
            return self.needs_privilege(Ring::System);
        }
        self.may_see(path)
    }

    pub fn needs_admin(&self, what: &str) -> Result<(), Problem> {
        if self.is_admin() {
            return Ok(());
        }
        Err(self.forbidden_tenant(format!("{what} needs an administrator's token")))
    }

    fn needs_service(&self) -> Result<(), Problem> {
        if self.is_admin() && self.token.privilege == Ring::System {
            return Ok(());
        }
        Err(wrong_service_token())
    }

    pub fn needs_privilege(&self, needed: Ring) -> Result<(), Problem> {
        if self.token.privilege >= needed {
            return Ok(());
        }
        let detail = format!("this needs a token with the privilege `{needed}`; yours has `{}`", self.token.privilege);
        Err(Problem::forbidden("forbidden_privilege", detail).with("needed", needed.name()))
    }

    /// A right is nobody's by privilege, not even the administrator's.
    pub fn needs_right(&self, needed: Right) -> Result<(), Problem> {
        if self.token.rights.contains(&needed) {
            return Ok(());
        }
        let detail = format!(
            "this needs a token with the right `{needed}`, which no privilege includes: an administrator makes one with \
             `noetl token create --right {needed}`"
        );
        Err(Problem::forbidden("forbidden_privilege", detail).with("needed", needed.name()))
    }

    /// Whoever has a right may pass it on, and so may an administrator of the highest privilege.
    pub fn may_give(&self, right: Right) -> Result<(), Problem> {
        if self.is_admin() && self.token.privilege == Ring::System { Ok(()) } else { self.needs_right(right) }
    }

    /// The tenant to act for: the one asked for if the caller may, else the caller's own. An administrator
    /// who names none gets `none`.
    pub fn acts_for(&self, asked: Option<Tenant>) -> Result<Option<Tenant>, Problem> {
        match (self.tenant(), asked) {
            (Some(own), Some(asked)) if *own != asked => Err(self.forbidden_tenant(format!(
                "this token acts for tenant `{own}` alone: acting for `{asked}` needs one of its tokens or an \
                 administrator's"
            ))),
            (Some(own), _) => Ok(Some(own.clone())),
            (None, asked) => Ok(asked),
        }
    }

    /// The tenant whose playbooks and executions a request is about. An administrator who names none means the
    /// tenant of a server nobody has divided.
    pub fn works_for(&self, asked: Option<Tenant>) -> Result<Tenant, Problem> {
        Ok(self.acts_for(asked)?.unwrap_or_else(Tenant::main))
    }

    /// Who changes a playbook. What is everybody's needs the privilege `system`, so without it an administrator
    /// acts as if he were the tenant's.
    pub fn actor_for(&self, tenant: &Tenant) -> Actor {
        let mut actor = self.actor();
        if self.token.privilege < Ring::System {
            actor.tenant.get_or_insert_with(|| tenant.clone());
        }
        actor
    }

    fn foreign(&self, path: &PluginPath) -> Problem {
        let owner = path.first();
        self.forbidden_tenant(format!(
            "`{path}` belongs to tenant `{owner}`: this needs one of its tokens or an administrator's"
        ))
    }

    fn forbidden_tenant(&self, detail: String) -> Problem {
        let own = self.tenant().map(Tenant::as_str);
        Problem::forbidden("forbidden_tenant", detail).with("token_tenant", own)
    }
}

/// Whether the request carries the operator's service token. Hashes are compared: how long that takes says nothing
/// about the token.
pub fn is_service(headers: &HeaderMap, expected: &str) -> bool {
    bearer(headers).is_some_and(|given| Digest::of(given.as_bytes()) == Digest::of(expected.as_bytes()))
}

/// A service route is asked for with a token that is none: what to say depends on whether there could be one.
pub fn refused_service(configured: bool) -> Problem {
    if configured {
        return wrong_service_token();
    }
    let detail = "no service token is set on this server: set `server.internal_token` (NOETL_INTERNAL_API_TOKEN), or use \
                  an administrator's token with the privilege `system`";
    Problem::of(503, "internal_api_off", detail)
}

fn wrong_service_token() -> Problem {
    let detail = "this is for services: send the operator's service token, or an administrator's token with the \
                  privilege `system`";
    Problem::forbidden("not_a_service", detail)
}

/// The token of `Authorization: Bearer <token>`; the scheme's case does not matter.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn caller(tenant: Option<&str>, privilege: Ring) -> Caller {
        let tenant = tenant.map(|name| Tenant::new(name).expect("valid"));
        let token = TokenInfo {
            id: "t1".into(),
            name: "test".into(),
            tenant,
            privilege,
            rights: BTreeSet::new(),
            created_at_ms: 0,
            created_by: "server".into(),
            expires_at_ms: None,
        };
        Caller { token, secret: String::new() }
    }

    fn path(text: &str) -> PluginPath {
        PluginPath::new(text).expect("valid")
    }

    fn code(result: Result<(), Problem>) -> &'static str {
        result.err().map_or("allowed", |problem| problem.code())
    }

    #[test]
    fn only_a_bearer_header_carries_a_token() {
        let with = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().expect("valid"));
            headers
        };
        assert_eq!(bearer(&with("Bearer abc")), Some("abc"));
        assert_eq!(bearer(&with("bearer  abc ")), Some("abc"));
        for wrong in ["abc", "Bearer", "Bearer ", "Basic abc", "Bearerabc"] {
            assert_eq!(bearer(&with(wrong)), None, "{wrong:?}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }

    #[test]
    fn the_rules_hold_for_every_access_and_every_kind_of_path() {
        let (own, foreign, system) = (path("acme/a"), path("other/a"), path("system/auth"));
        let tenant = caller(Some("acme"), Ring::Tenant);
        let admin = caller(None, Ring::System);
        for (access, target, wanted) in [
            (Access::See, &own, "allowed"),
            (Access::See, &system, "allowed"),
            (Access::See, &foreign, "forbidden_tenant"),
            (Access::Change, &own, "allowed"),
            (Access::Change, &system, "forbidden_tenant"),
            (Access::Change, &foreign, "forbidden_tenant"),
            (Access::OwnTenant, &system, "allowed"),
            (Access::OwnTenant, &foreign, "forbidden_tenant"),
            (Access::Scrape, &own, "forbidden_tenant"),
            (Access::Write, &own, "allowed"),
            (Access::Steer, &own, "allowed"),
            (Access::Service, &own, "not_a_service"),
        ] {
            assert_eq!(code(tenant.check(access, Some(target))), wanted, "{access:?} {target}");
            assert_eq!(code(admin.check(access, Some(target))), "allowed", "{access:?} {target}");
        }
    }

    #[test]
    fn a_token_of_the_pure_ring_reads_and_calls_but_changes_nothing() {
        let pure = caller(Some("acme"), Ring::Pure);
        let own = path("acme/a");
        assert_eq!(code(pure.check(Access::See, Some(&own))), "allowed");
        assert_eq!(code(pure.check(Access::Watch, None)), "allowed");
        for access in [Access::Change, Access::OwnTenant, Access::Write, Access::Steer] {
            assert_eq!(code(pure.check(access, Some(&own))), "forbidden_privilege", "{access:?}");
        }
    }

    #[test]
    fn the_platforms_own_paths_change_only_with_the_privilege_of_their_ring() {
        let operator = caller(None, Ring::User);
        assert_eq!(code(operator.check(Access::Change, Some(&path("acme/a")))), "allowed");
        assert_eq!(code(operator.check(Access::Change, Some(&path("tools/http")))), "forbidden_privilege");
    }

    #[test]
    fn a_tenant_acts_for_itself_alone() {
        let acme = || Tenant::new("acme").expect("valid");
        let other = || Tenant::new("other").expect("valid");
        let tenant = caller(Some("acme"), Ring::User);
        assert_eq!(tenant.acts_for(None).expect("own"), Some(acme()));
        assert_eq!(tenant.acts_for(Some(acme())).expect("own"), Some(acme()));
        assert_eq!(tenant.acts_for(Some(other())).expect_err("foreign").code(), "forbidden_tenant");
        assert_eq!(caller(None, Ring::System).acts_for(Some(other())).expect("admin"), Some(other()));
    }

    #[test]
    fn a_right_comes_with_no_privilege_and_is_given_by_who_has_it() {
        let right = Right::CredentialReveal;
        let (admin, mut tenant) = (caller(None, Ring::System), caller(Some("acme"), Ring::Tenant));
        assert_eq!((code(admin.needs_right(right)), code(admin.may_give(right))), ("forbidden_privilege", "allowed"));
        assert_eq!(
            (code(tenant.needs_right(right)), code(tenant.may_give(right))),
            ("forbidden_privilege", "forbidden_privilege")
        );
        assert_eq!(code(caller(None, Ring::Tenant).may_give(right)), "forbidden_privilege");
        tenant.token.rights.insert(right);
        assert_eq!((code(tenant.needs_right(right)), code(tenant.may_give(right))), ("allowed", "allowed"));
    }

    #[test]
    fn only_the_operators_token_or_a_system_administrators_is_a_services() {
        let with = |token: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, format!("Bearer {token}").parse().expect("valid"));
            headers
        };
        assert!(is_service(&with("secret"), "secret"));
        assert!(!is_service(&with("secre"), "secret") && !is_service(&HeaderMap::new(), ""));
        assert_eq!(refused_service(true).code(), "not_a_service");
        assert_eq!(refused_service(false).code(), "internal_api_off");
        assert_eq!(code(caller(None, Ring::Tenant).check(Access::Service, None)), "not_a_service");
        assert_eq!(code(caller(None, Ring::System).check(Access::Service, None)), "allowed");
    }

    #[test]
    fn an_administrator_changes_what_is_everybodys_only_with_the_highest_privilege() {
        let acme = Tenant::new("acme").expect("valid");
        assert_eq!(caller(None, Ring::System).actor_for(&acme).tenant, None);
        assert_eq!(caller(None, Ring::User).actor_for(&acme).tenant, Some(acme.clone()));
        assert_eq!(caller(Some("other"), Ring::User).actor_for(&acme).tenant, Tenant::new("other").ok());
        assert_eq!(caller(None, Ring::System).works_for(None).expect("an administrator"), Tenant::main());
    }
}
