//! What an operator can set about the HTTP side. Messages about a limit name the key of the configuration
//! file that moves it, where there is one.

/// See each field; [`HttpOptions::default`] suits one machine.
#[derive(Clone)]
pub struct HttpOptions {
    /// Largest component that can be pushed.
    pub max_component_bytes: u64,
    /// Largest input of a call.
    pub max_call_bytes: u64,
    /// Longest time the body of one request may take to arrive.
    pub body_timeout_secs: u64,
    /// Longest pause while a body arrives.
    pub body_idle_secs: u64,
    /// Least speed of a body on average, once a pause would have been over. 0 asks for none.
    pub body_min_bytes_per_sec: u64,
    /// Memory that bodies of requests may take together; a tenant gets a fair share of it.
    pub body_memory_bytes: u64,
    /// Longest time the head of a request may take to arrive; idle connections are closed after it too.
    pub header_timeout_secs: u64,
    /// Connections served at a time; more of them wait.
    pub max_connections: usize,
    /// Time that open requests get to finish on shutdown.
    pub drain_secs: u64,
    /// Time between signs of life on a stream.
    pub heartbeat_secs: u64,
    /// Whether `/metrics` is served without a token. `None`: only if the server listens on loopback.
    pub metrics_open: Option<bool>,
    /// What services send to reach `/api/internal`. `None`: only an administrator's token does.
    pub internal_token: Option<String>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            max_component_bytes: 256 << 20,
            max_call_bytes: 320 << 20,
            body_timeout_secs: 600,
            body_idle_secs: 30,
            body_min_bytes_per_sec: 1 << 10,
            body_memory_bytes: 256 << 20,
            header_timeout_secs: 30,
            max_connections: 4096,
            drain_secs: 10,
            heartbeat_secs: 15,
            metrics_open: None,
            internal_token: None,
        }
    }
}
