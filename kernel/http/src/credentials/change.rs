//! Credentials are kept, replaced and deleted.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use noetl_contract::Tenant;
use noetl_registry::tokens::Right;
use noetl_store::wallet::kinds::Invalid;
use noetl_store::wallet::{Binding, Changes, Credential, NewRecord, Record, VaultError, kinds};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::{CredentialView, change_of};
use crate::app::{Cx, to_the_end};
use crate::input;
use crate::problem::Problem;

/// No field of any type has a longer name.
const LONGEST_NAME: usize = 24;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WhoseQuery {
    /// The token's own tenant when left out; an administrator names one, or means `main`.
    #[param(value_type = Option<String>)]
    tenant: Option<Tenant>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutCredential {
    /// Letters, digits, `_`, `-` and `.`.
    name: String,
    /// `bearer`, `basic`, `api_key`, `postgres`, `nats`, `s3`, `hmac` or `oauth2`.
    r#type: String,
    /// Its fields, as its type has them.
    #[schema(value_type = Object)]
    data: Map<String, Value>,
    /// Where it may go: `api.example.com`, `*.example.org`, `db.example.com:5432`. Without a port it is the usual one, and HTTP
    /// is encrypted unless `http://host:port` says otherwise. When left out, the place that the credential itself names;
    /// a `bearer`, `basic`, `api_key` or `hmac` names none and goes nowhere.
    #[schema(value_type = Option<Vec<String>>)]
    hosts: Option<Vec<Binding>>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    description: String,
    /// Takes a secret that is too short to be masked where it is told back. Without this it is refused.
    #[serde(default)]
    allow_short: bool,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PatchCredential {
    /// The fields that change, as its type has them; `null` takes one away. A new `url` takes the place of all that an address
    /// says. Where a secret that stays would go somewhere else by this, the right `credential:reveal` is needed.
    #[serde(default)]
    #[schema(value_type = Object)]
    data: Map<String, Value>,
    /// Where it may go from now on. When left out, it stays as it is; a credential that went to the place it names itself
    /// goes to the one that it names now.
    #[schema(value_type = Option<Vec<String>>)]
    hosts: Option<Vec<Binding>>,
    tags: Option<Vec<String>>,
    description: Option<String>,
    /// Takes a secret that is too short to be masked where it is told back. Without this it is refused.
    #[serde(default)]
    allow_short: bool,
}

#[derive(Serialize, ToSchema)]
pub struct KeptCredential {
    #[serde(flatten)]
    credential: CredentialView,
    /// What its owner should know, such as that it goes nowhere yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'static str>,
}

#[derive(Serialize, ToSchema)]
pub struct DeletedCredential {
    name: String,
    tenant: String,
    deleted: bool,
}

/// Keep a credential, in place of the one of the same name if there is one.
#[utoipa::path(post, path = "/api/credentials", tag = "credentials", params(WhoseQuery), request_body = PutCredential,
    responses((status = 201, body = KeptCredential, description = "it is new"),
              (status = 200, body = KeptCredential, description = "one of this name was replaced")))]
pub async fn put(mut cx: Cx) -> Result<Response, Problem> {
    let query: WhoseQuery = input::query(&cx.query)?;
    let tenant = cx.caller()?.works_for(query.tenant)?;
    let wanted: PutCredential = input::document(&mut cx).await.map_err(not_repeated)?;
    let kind = kinds::kind(&wanted.r#type).map_err(VaultError::from)?;
    let fields = kind.check(&wanted.data).map_err(named)?;
    can_be_masked(&tenant, fields.iter(), wanted.allow_short)?;
    let new = NewRecord {
        tenant,
        alias: wanted.name,
        kind,
        fields,
        hosts: wanted.hosts,
        tags: wanted.tags,
        description: wanted.description,
    };
    let (kernel, change) = (cx.kernel().clone(), change_of(&cx)?);
    let record = to_the_end(async move { kernel.wallet().put(new, change).await }).await?;
    let status = if record.created_at_ms == record.changed_at_ms { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(KeptCredential::of(record))).into_response())
}

/// Change some of a credential; everything else stays as it is, secrets included.
#[utoipa::path(patch, path = "/api/credentials/{name}", tag = "credentials", params(("name" = String, Path), WhoseQuery),
    request_body = PatchCredential, responses((status = 200, body = KeptCredential)))]
pub async fn merge(mut cx: Cx) -> Result<Response, Problem> {
    let query: WhoseQuery = input::query(&cx.query)?;
    let tenant = cx.caller()?.works_for(query.tenant)?;
    let wanted: PatchCredential = input::document(&mut cx).await.map_err(not_repeated_of_part)?;
    let (kernel, change, alias) = (cx.kernel().clone(), change_of(&cx)?, cx.args.name.clone());
    let PatchCredential { data, hosts, tags, description, allow_short } = wanted;
    let changes = Changes { data, hosts, tags, description };
    let proposal = kernel.wallet().propose(tenant.clone(), alias, changes).await.map_err(|error| match error {
        VaultError::Invalid(invalid) => named(invalid),
        other => other,
    })?;
    can_be_masked(&tenant, proposal.changed(), allow_short)?;
    if proposal.goes_further() {
        may_send_elsewhere(&cx)?;
    }
    let record = to_the_end(async move { kernel.wallet().accept(proposal, change).await }).await?;
    Ok(Json(KeptCredential::of(record)).into_response())
}

/// Whoever says where a secret goes can have it sent to himself.
fn may_send_elsewhere(cx: &Cx) -> Result<(), Problem> {
    let right = Right::CredentialReveal;
    cx.caller()?.needs_right(right).map_err(|_| {
        let detail = format!(
            "a secret that the credential keeps would go where it could not go before: give its secrets anew in the same \
             request, or use a token with the right `{right}`, which an administrator makes with \
             `noetl token create --right {right}`"
        );
        Problem::forbidden("forbidden_privilege", detail).with("needed", right.name())
    })
}

impl KeptCredential {
    fn of(record: Record) -> Self {
        let warning = record
            .hosts
            .is_empty()
            .then_some("it may go nowhere: name the hosts it is for, with `hosts` or `noetl credential add --host`");
        Self { credential: record.into(), warning }
    }
}

/// A body that is no credential may have its secret anywhere, and a message about JSON has parts of the JSON in it.
fn not_repeated(problem: Problem) -> Problem {
    if problem.code() != "invalid_body" {
        return problem;
    }
    let detail = "the body is not a credential: one JSON object with the texts `name` and `type`, an object of texts `data`, and \
                  if need be the lists `hosts` (`api.example.com`, `*.example.org`, `db.example.com:5432`) and `tags`, the text \
                  `description` and `allow_short`. What is wrong is not repeated here, since it may be a secret";
    problem.retold(&["name", "type", "data", "hosts", "tags", "description", "allow_short"], detail)
}

/// The same for a part of one.
fn not_repeated_of_part(problem: Problem) -> Problem {
    if problem.code() != "invalid_body" {
        return problem;
    }
    let detail = "the body does not say what to change of a credential: one JSON object with any of the object of texts `data` \
                  (`null` takes a field away), the lists `hosts` and `tags`, the text `description` and `allow_short`; name and \
                  type stay as they are. What is wrong is not repeated here, since it may be a secret";
    problem.retold(&["data", "hosts", "tags", "description", "allow_short"], detail)
}

/// A name that can be none of a field is not repeated: it may be the secret itself, in the wrong place.
fn named(invalid: Invalid) -> VaultError {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let name = invalid.field.strip_prefix("data.").unwrap_or_default();
    if name.len() <= LONGEST_NAME && name.bytes().all(plain) {
        return invalid.into();
    }
    Invalid::new("data", "a name in `data` is no field of this type; `noetl credential add --help` lists them").into()
}

/// A secret that is too short to be told from other text would be shown wherever a host or a tool tells it back. One that is
/// the tenant's name would be masked in every line of the server's log that is about the tenant.
fn can_be_masked<'f>(
    tenant: &Tenant,
    fields: impl Iterator<Item = (&'f str, &'f str)>,
    allow_short: bool,
) -> Result<(), Problem> {
    for (name, value) in fields.filter(|(name, value)| !Credential::is_public(name) && !value.is_empty()) {
        let refused = |detail: String| {
            Err(Problem::invalid_field(
                "invalid_credential",
                &format!("data.{name}"),
                format!("field `{name}`: {detail}"),
            ))
        };
        if value.trim().eq_ignore_ascii_case(tenant.as_str()) {
            return refused("the tenant's name is no secret, and could not be read in any log any more".to_owned());
        }
        if !allow_short && !noetl_scrub::is_findable(value.trim()) {
            return refused(format!(
                "a secret has at least {} bytes and is no part of `{}`, since it is masked wherever it is told back, and a \
                 shorter one cannot be told from other text; use a longer one, or take the risk with `allow_short` \
                 (`noetl credential add --allow-short`)",
                noetl_scrub::SHORTEST,
                noetl_scrub::PLACEHOLDER,
            ));
        }
    }
    Ok(())
}

/// Delete a credential. What uses it fails from now on; its audit stays.
#[utoipa::path(delete, path = "/api/credentials/{name}", tag = "credentials",
    params(("name" = String, Path), WhoseQuery), responses((status = 200, body = DeletedCredential)))]
pub async fn delete(cx: Cx) -> Result<Response, Problem> {
    let query: WhoseQuery = input::query(&cx.query)?;
    let tenant = cx.caller()?.works_for(query.tenant)?;
    let (kernel, change, alias) = (cx.kernel().clone(), change_of(&cx)?, cx.args.name.clone());
    let record = to_the_end(async move { kernel.wallet().delete(tenant, alias, change).await }).await?;
    let answer = DeletedCredential { name: record.alias, tenant: record.tenant.to_string(), deleted: true };
    Ok(Json(answer).into_response())
}
