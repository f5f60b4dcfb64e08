//! HTTP exchanges on a tape, with both bodies.

use serde_json::{Value, json};

use super::objects::content;
use super::{Taped, named};
use crate::bindings::noetl::http_client::http_client as wit;
use crate::state::CallState;

const CALL: &str = "http-client.send";

impl CallState {
    pub(crate) async fn send_taped(
        &mut self,
        request: wit::Request,
    ) -> wasmtime::Result<Result<wit::Response, wit::HttpError>> {
        let body = match &request.body {
            Some(handle) => {
                let payload = self.table.get(handle)?.clone();
                content(self.drivers.payloads.clone(), &payload).await
            }
            None => Value::Null,
        };
        let with = json!({
            "method": request.method, "url": request.url, "headers": named(&request.headers), "body": body,
        });
        if let Some(answer) = self.played(CALL, &|| with.clone())? {
            if let Some(body) = request.body {
                self.take_in(body)?;
            }
            return self.played_answer(&answer);
        }
        let answer = self.send_live(request).await?;
        let written = match &answer {
            Ok(response) => {
                let payload = self.table.get(&response.body)?.clone();
                let body = content(self.drivers.payloads.clone(), &payload).await;
                json!({ "ok": { "status": response.status, "headers": named(&response.headers), "body": body } })
            }
            Err(error) => json!({ "error": error.write() }),
        };
        self.recorded(CALL, with, written)?;
        Ok(answer)
    }

    fn played_answer(&mut self, answer: &Value) -> wasmtime::Result<Result<wit::Response, wit::HttpError>> {
        if let Some(Err(error)) = <Result<(), wit::HttpError>>::read(answer) {
            return Ok(Err(error));
        }
        let read = || {
            let said = answer.get("ok")?;
            let status = u16::try_from(said.get("status")?.as_u64()?).ok()?;
            Some((status, headers(said.get("headers")?)?, Self::payload_of(said.get("body")?)?))
        };
        let Some((status, headers, body)) = read() else { return Err(self.no_answer(CALL).into()) };
        let body = self.hand_out(body)?;
        Ok(Ok(wit::Response { status, headers, body }))
    }
}

fn headers(value: &Value) -> Option<Vec<(String, String)>> {
    let pair = |field: &Value| {
        let (name, value) = field.as_object()?.iter().next()?;
        Some((name.clone(), value.as_str()?.to_owned()))
    };
    value.as_array()?.iter().map(pair).collect()
}
