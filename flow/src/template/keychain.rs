//! `keychain` in templates: an object whose fields are credentials, whose fields are placeholders.

use std::sync::Arc;

use minijinja::Value;
use minijinja::value::{Object, ObjectRepr};

use super::error::Cause;
use crate::keychain::{Declared, Keychain};

/// The name it has.
pub(crate) const KEYCHAIN: &str = "keychain";

/// The object for the declarations of a playbook.
pub fn keychain(declared: &Keychain) -> Value {
    Value::from_object(Credentials(declared.clone()))
}

#[derive(Debug)]
struct Credentials(Keychain);

impl Object for Credentials {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let name = key.as_str()?;
        let declared = self.0.get(name).cloned().unwrap_or_else(|| Declared::undeclared(name));
        Some(Value::from_object(Credential(declared)))
    }
}

#[derive(Debug)]
struct Credential(Declared);

impl Object for Credential {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        key.as_str().map(|field| Value::from(self.0.placeholder(field)))
    }
}

/// Neither the keychain nor a credential as a whole is anything that could be sent.
pub(super) fn check(value: &Value) -> Result<(), Cause> {
    let whole =
        value.downcast_object_ref::<Credentials>().is_some() || value.downcast_object_ref::<Credential>().is_some();
    if whole {
        let text = "a credential as a whole has no value; name a field of it: `keychain.NAME.FIELD`";
        return Err(Cause::Failed(text.to_owned()));
    }
    Ok(())
}
