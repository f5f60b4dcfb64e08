//! What was asked about credentials, on a tape. No answer has a secret in it.

use serde_json::json;

use super::Taped;
use crate::bindings::noetl::secrets::secrets as wit;
use crate::state::CallState;

impl CallState {
    pub(crate) async fn describe_taped(
        &mut self,
        alias: String,
    ) -> wasmtime::Result<Result<wit::Description, wit::SecretError>> {
        const CALL: &str = "secrets.describe";
        let with = json!({ "alias": alias });
        if let Some(answer) = self.played(CALL, &|| with.clone())? {
            return Taped::read(&answer).ok_or_else(|| self.no_answer(CALL).into());
        }
        let answer = self.describe_live(&alias).await;
        self.recorded(CALL, with, answer.write())?;
        Ok(answer)
    }

    pub(crate) async fn headers_taped(
        &mut self,
        alias: String,
    ) -> wasmtime::Result<Result<Vec<(String, String)>, wit::SecretError>> {
        const CALL: &str = "secrets.headers";
        let with = json!({ "alias": alias });
        if let Some(answer) = self.played(CALL, &|| with.clone())? {
            return Taped::read(&answer).ok_or_else(|| self.no_answer(CALL).into());
        }
        let answer = self.headers_live(&alias).await;
        self.recorded(CALL, with, answer.write())?;
        Ok(answer)
    }
}
