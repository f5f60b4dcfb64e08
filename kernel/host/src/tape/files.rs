//! Files on a tape, with their content.

use serde_json::json;

use super::Taped;
use crate::bindings::noetl::files::files as wit;
use crate::state::CallState;

impl CallState {
    pub(crate) async fn read_taped(&mut self, path: String) -> wasmtime::Result<Result<Vec<u8>, wit::FileError>> {
        const CALL: &str = "files.read";
        let with = json!({ "path": path });
        if let Some(answer) = self.played(CALL, &|| with.clone())? {
            return Taped::read(&answer).ok_or_else(|| self.no_answer(CALL).into());
        }
        let answer = self.read_live(path).await?;
        self.recorded(CALL, with, answer.write())?;
        Ok(answer)
    }
}
