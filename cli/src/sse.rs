//! Server-sent events: an event is the lines up to a blank one, its data the text after `data:`.
//!
//! Lines that begin with a colon are signs of life and say nothing. Names of fields that are not known are passed
//! over, as the format asks.

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// To go on after it: the `Last-Event-ID` of the next request.
    pub id: Option<String>,
    /// Its type; empty when none is said.
    pub name: String,
    pub data: String,
}

/// Cuts a byte stream into its events.
#[derive(Debug, Default)]
pub struct Events {
    pending: Vec<u8>,
    id: Option<String>,
    name: String,
    data: Vec<String>,
}

impl Events {
    pub fn feed(&mut self, chunk: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        self.pending.extend_from_slice(chunk);
        let mut read = 0;
        while let Some(length) = self.pending[read..].iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&self.pending[read..read + length]).into_owned();
            read += length + 1;
            events.extend(self.line(line.trim_end_matches('\r')));
        }
        self.pending.drain(..read);
        events
    }

    fn line(&mut self, line: &str) -> Option<Event> {
        let value = |rest: &str| rest.strip_prefix(' ').unwrap_or(rest).to_owned();
        if let Some(data) = line.strip_prefix("data:") {
            self.data.push(value(data));
        } else if let Some(id) = line.strip_prefix("id:") {
            self.id = Some(value(id));
        } else if let Some(name) = line.strip_prefix("event:") {
            self.name = value(name);
        } else if line.is_empty() {
            let (id, name, data) = (self.id.take(), std::mem::take(&mut self.name), std::mem::take(&mut self.data));
            return (!data.is_empty()).then(|| Event { id, name, data: data.join("\n") });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_cut_wherever_the_network_cuts_the_bytes() {
        let stream = b": hello\n\nevent: log\nid: 1\ndata: {\"a\":1}\n\ndata: x\r\ndata: y\r\n\r\ndata: rest";
        let whole = Events::default().feed(stream);
        let mut events = Events::default();
        let bytewise: Vec<_> = stream.iter().flat_map(|byte| events.feed(&[*byte])).collect();
        let event = |id: Option<&str>, name: &str, data: &str| Event {
            id: id.map(str::to_owned),
            name: name.to_owned(),
            data: data.to_owned(),
        };
        assert_eq!(whole, [event(Some("1"), "log", "{\"a\":1}"), event(None, "", "x\ny")]);
        assert_eq!(bytewise, whole);
    }
}
