//! The service `system/outbox_publisher`: glue between the world `publisher`, the pure [`outbox`] and [`message`].

mod message;
mod outbox;

use noetl_flow::view::Segment;
use noetl_sdk::engine::publisher::publishing;

struct Service;

noetl_sdk::publisher!(Service);

impl publishing::Guest for Service {
    fn tick(
        state: Vec<u8>,
        time_ms: u64,
        tip: u64,
        extents: Vec<publishing::Extent>,
        results: Vec<publishing::ResultOf>,
    ) -> publishing::Plan {
        let mut outbox = outbox::Outbox::read(&state, time_ms);
        for extent in extents {
            outbox.extent(extent.lease, extent.upto);
        }
        for result in results {
            outbox.result(result.lease, result.error, time_ms);
        }
        let leases = outbox.hand_out(time_ms, tip).into_iter().map(lease).collect();
        let (published, wake_at) = (outbox.published(), outbox.wake_at());
        publishing::Plan { state: outbox.write(), leases, published, wake_at }
    }

    fn encode(segments: Vec<publishing::Segment>) -> Vec<publishing::Message> {
        segments.into_iter().map(|segment| message(message::encode(of(segment)))).collect()
    }
}

fn lease(lease: outbox::Lease) -> publishing::Lease {
    let outbox::Lease { id, after, upto, limit, attempt, until_ms } = lease;
    publishing::Lease { id, after, upto, limit, attempt, until_ms }
}

fn message(message: message::Message) -> publishing::Message {
    let message::Message { subject, key, body } = message;
    publishing::Message { subject, key, body }
}

fn of(segment: publishing::Segment) -> Segment {
    let publishing::Segment { execution, tenant, version, position, time_ms, decided_by, events } = segment;
    Segment { execution, tenant, version, position, time_ms, decided_by, events }
}
