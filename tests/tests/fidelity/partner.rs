//! The server at both ends: gives one document, and keeps every body it is sent, as it was sent.

use noetl_tests::recorder::{Recorder, Reply};

pub struct Partner {
    pub url: String,
    recorder: Recorder,
}

impl Partner {
    pub async fn start(document: String) -> Self {
        let recorder = Recorder::start(move |asked| {
            let body = if asked.method == "GET" { document.clone() } else { "{}".to_owned() };
            Reply { status: 200, headers: vec![("content-type", "application/json".to_owned())], body }
        });
        let recorder = recorder.await;
        Self { url: format!("{}/", recorder.url), recorder }
    }

    /// What it was told last.
    #[track_caller]
    pub fn last(&self) -> String {
        let told = self.recorder.asked().into_iter().rfind(|asked| asked.method == "POST").expect("something was sent");
        String::from_utf8(told.body).expect("a body is text")
    }
}
