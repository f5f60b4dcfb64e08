//! `keychain` in templates: an object whose fields are credentials, whose fields are placeholders.

use std::fmt;
use std::sync::Arc;

use minijinja::Value;
use minijinja::value::{Object, ObjectRepr};

use super::error::Cause;
use crate::keychain::{Declared, Keychain};

/// The name it has.
pub(crate) const KEYCHAIN: &str = "keychain";

/// A name no playbook can declare anything for, under which every credential is found by its alias.
pub(super) const CREDENTIALS: &str = "@keychain";

/// The object for the declarations of a playbook. What it gives is sealed by the context it is read from.
pub fn keychain(declared: &Keychain) -> Value {
    Value::from_object(Credentials { declared: Arc::new(declared.clone()), seal: None })
}

/// What a context shows: the declarations in it, or none, with its seal.
pub(super) fn sealed(declared: Option<&Value>, seal: Option<&Arc<str>>) -> Value {
    let declared = match declared.map(|value| (value, value.downcast_object_ref::<Credentials>())) {
        Some((_, Some(credentials))) => credentials.declared.clone(),
        Some((other, None)) => return other.clone(),
        None => Arc::default(),
    };
    Value::from_object(Credentials { declared, seal: seal.cloned() })
}

struct Credentials {
    declared: Arc<Keychain>,
    seal: Option<Arc<str>>,
}

/// Without the seal, which no template may read.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Credentials").field(&self.declared).finish()
    }
}

impl Object for Credentials {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let name = key.as_str()?;
        let declared = self.declared.get(name).cloned().unwrap_or_else(|| Declared::undeclared(name));
        Some(Value::from_object(Credential { declared, seal: self.seal.clone() }))
    }
}

struct Credential {
    declared: Declared,
    seal: Option<Arc<str>>,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Credential").field(&self.declared).finish()
    }
}

impl Object for Credential {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        key.as_str().map(|field| Value::from(self.declared.placeholder(self.seal.as_deref(), field)))
    }
}

pub(super) fn is_keychain(value: &Value) -> bool {
    value.downcast_object_ref::<Credentials>().is_some()
}

/// Neither the keychain nor a credential as a whole is anything that could be sent.
pub(super) fn check(value: &Value) -> Result<(), Cause> {
    if is_keychain(value) || value.downcast_object_ref::<Credential>().is_some() {
        let text = "a credential as a whole has no value; name a field of it: `keychain.NAME.FIELD`";
        return Err(Cause::Failed(text.to_owned()));
    }
    Ok(())
}
